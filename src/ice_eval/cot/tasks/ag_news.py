"""AG News."""

from ice_eval.cot.tasks._base import CotTask, cot_task
from ice_eval.cot.tasks._labels import label_task


@cot_task("ag_news")
def ag_news() -> CotTask:
    """Topic of a news item: world, sports, business or technology (Zhang et al., 2015)."""
    return label_task(
        "ag_news",
        question="Which section of a newspaper does this item belong to?\n\n{text}",
        words={
            "World": ("world news",),
            "Sports": ("sport",),
            "Business": (),
            "Sci/Tech": ("science and technology", "science/technology", "sci-tech", "technology", "science", "tech"),
        },
        text="The home side won the cup final 3-1 after extra time.",
        steps=("A cup final is a match between two teams.", "The item reports the result of the match."),
        answer="Sports",
    )
