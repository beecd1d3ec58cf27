import pytest
from hypothesis import given
from hypothesis import strategies as st

from ice_eval.subjects.chain import Step, given_steps, split_steps
from ice_eval.subjects.chain.steps import is_thinking, thinking, visible


def texts(response):
    return [step.text for step in split_steps(response).steps]


# Each case is the steps that are expected, and what stands between them in the response.
SENTENCES = [
    ["She has 3 cats.", "He has 4 dogs."],
    ["Is it so?", "Yes!", "Then go on."],
    ["Dr. Smith met Mr. Jones vs. Mrs. Hill at noon.", "They talked."],
    ["It costs $3.50 per kg, i.e. $7.00 for two.", "That is fine."],
    ["Use a unit, e.g. Metres, for this.", "Then divide."],
    ["J. K. Rowling and George W. Bush agreed.", "It rained."],
    ["The U.S. Army moved at 5 a.m. Tuesday.", "Nobody saw it."],
    ["They met at 5 p.m.", "The bus had left."],
    ["It grew in the U.S.", "The rest is history."],
    ["See Fig. 2 and Eq. 3 for this.", "No. 5 on p. 7 is odd."],
    ["Version 2.1.3 came after v1.9.", "It was faster."],
    ["Pi is about 3.14159.", "Twice that is 6.28."],
    ["Hmm... Let me think... Well, it is 4.", "Good."],
    ["Wait… Maybe not.", "Try again."],
    ["The rope is 5 ft. long and 2 in. wide.", "It weighs 3 lb.", "That is all."],
    ["So it must be option B.", "Option A is too small."],
    ["Vitamin B.", "Then vitamin C."],
    ["The factorial 5! = 120 is large.", "Divide it."],
    ['He said "Stop."', "Then he left."],
    ["(This is an aside. It has two sentences.)", "So it goes on."],
    ["**First**, add them.", "**Then** divide."],
    ["We know $x = 3. 5$ and \\(y = 4. Z\\) hold.", "So add."],
    ["Each costs $5.", "Four cost $20.", "He has $3 left."],
    ["It costs $5.00 and she pays $6.00.", "Her change is $1.00."],
    ["Call `f. Then g` first.", "Then stop."],
    ["They used nails for other purposes.", "screws came later."],
    ["About approx. 5 of them, etc. and so on.", "Fine."],
    ["The total is 12.", "3 more make 15."],
    ["That is 50%.", "Half of 8 is 4."],
    ["Team A scored 3.", "Team B scored 5."],
]


@pytest.mark.parametrize("expected", SENTENCES, ids=lambda case: case[0][:30])
def test_sentences_end_where_a_reader_would_end_them(expected):
    assert texts(" ".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["甲有三个苹果。", "乙有四个！", "一共是七个吗？", "是的。"],
        ["りんごが３つあります。", "みかんが４つあります。"],
        ["राम के पास 3 सेब हैं।", "श्याम के पास 4 हैं।"],
        ["لديه ثلاث تفاحات.", "كم بقي؟", "بقيت اثنتان."],
    ],
)
def test_sentences_end_in_other_scripts_too(expected):
    space = "" if expected[0].endswith("。") else " "
    assert texts(space.join(expected)) == expected


BLOCKS = {
    "lines": ("Add 3 and 4\nThat is 7\n\nDouble it", ["Add 3 and 4", "That is 7", "Double it"]),
    "windows line ends": ("Add 3 and 4\r\nThat is 7\r\n", ["Add 3 and 4", "That is 7"]),
    "numbered": ("1. Add 3 and 4.\n2. Double it.", ["1. Add 3 and 4.", "2. Double it."]),
    "numbered with brackets": ("1) Add.\n2) Double it.", ["1) Add.", "2) Double it."]),
    "numbered in one line": ("1. Add them. 2. Double it.", ["1. Add them.", "2. Double it."]),
    "numbered without stops": ("1. Add them 2. Double it", ["1. Add them", "2. Double it"]),
    "numbered after a colon": ("We know: 1. It fits. 2. It holds.", ["We know: 1. It fits.", "2. It holds."]),
    "a result is no list": ("The sum is: 1. Then we add 3.", ["The sum is: 1.", "Then we add 3."]),
    "lettered": ("(A) Glue sticks.\n(B) Nails hold.", ["(A) Glue sticks.", "(B) Nails hold."]),
    "letters with stops": ("A. Glue sticks.\nB. Nails hold.", ["A. Glue sticks.", "B. Nails hold."]),
    "bullets": ("- One cat.\n* Two dogs.\n• Three birds.", ["- One cat.", "* Two dogs.", "• Three birds."]),
    "bullets in one line": ("- Cats: 3 - Dogs: 4", ["- Cats: 3", "- Dogs: 4"]),
    "a minus is no bullet": ("The rest is 10 - 3 = 7 apples", ["The rest is 10 - 3 = 7 apples"]),
    "steps with names": ("Step 1. Add. Step 2. Double it.", ["Step 1. Add.", "Step 2. Double it."]),
    "steps with colons": ("Step 1: Add. Step 2: Double it.", ["Step 1: Add.", "Step 2: Double it."]),
    "heading": ("## Setup\nAdd them.\n### Sum\n\nDouble it.", ["## Setup\nAdd them.", "### Sum\n\nDouble it."]),
    "heading and text in one line": ("## Step 1: Add. They are 7. Fine.", ["## Step 1: Add. They are 7.", "Fine."]),
    "four hashes may head a step": ("#### Step 1\nAdd them.", ["#### Step 1\nAdd them."]),
    "bold line": ("**Adding up**\nThey are 7.", ["**Adding up**\nThey are 7."]),
    "headings on top of each other": ("# A\n## B\nAdd them.", ["# A\n## B\nAdd them."]),
    "colon": ("Here is the sum:\n3 + 4 = 7", ["Here is the sum:\n3 + 4 = 7"]),
    "item with bold heading": ("1. **Cats:**\n   - There are 3.", ["1. **Cats:**\n   - There are 3."]),
    "rule": ("Add them.\n\n---\n\nDouble it.", ["Add them.", "Double it."]),
    "code": (
        "Run this.\n```python\nx = 1. \n\nprint(x)\n```\nIt prints 1.",
        ["Run this.", "```python\nx = 1. \n\nprint(x)\n```", "It prints 1."],
    ),
    "code after a colon": ("Run this:\n```\na\nb\n```", ["Run this:\n```\na\nb\n```"]),
    "code that was cut short": ("Run.\n```\na. B\nc", ["Run.", "```\na. B\nc"]),
    "table": (
        "Data.\n| a | b |\n|---|---|\n| 1. A | 2 |\nDone.",
        ["Data.", "| a | b |\n|---|---|\n| 1. A | 2 |", "Done."],
    ),
    "displayed formula": ("So we get\n\\[\nx = 3. \n\\]\nNow add.", ["So we get\n\\[\nx = 3. \n\\]", "Now add."]),
    "formula of several lines": (
        "Solve:\n\\begin{align}\nx &= 1 \\\\\ny &= 2\n\\end{align}\nThen add.",
        ["Solve:\n\\begin{align}\nx &= 1 \\\\\ny &= 2\n\\end{align}", "Then add."],
    ),
    "formulas in a row": ("$$x = 1$$\n$$x + 1 = 2$$\nDone.", ["$$x = 1$$\n$$x + 1 = 2$$", "Done."]),
    "formula inside its sentence": (
        "We get\n\\[ x = 3 \\]\nwhere x is a price.",
        ["We get\n\\[ x = 3 \\]\nwhere x is a price."],
    ),
    "formula that goes on": ("3 * 4 + 5\n= 12 + 5\n= 17\nDone", ["3 * 4 + 5\n= 12 + 5\n= 17", "Done"]),
    "formula, then an item": ("- It is: \\[ 3 \\] - Now add.", ["- It is: \\[ 3 \\]", "- Now add."]),
    "nothing": ("", []),
    "spaces": (" \n\t\n", []),
    "ornament": ("***\n---\n...", []),
}


@pytest.mark.parametrize(("response", "expected"), BLOCKS.values(), ids=BLOCKS)
def test_blocks_are_steps(response, expected):
    assert texts(response) == expected


ANSWERS = {
    "hashes": ("Add.\nIt is 42.\n#### 42", 2, "#### 42"),
    "hashes end the chain": ("Add.\n#### 42\n\nQuestion: What now?", 1, "#### 42\n\nQuestion: What now?"),
    "sentence": ("Add them. The answer is 42.", 1, "The answer is 42."),
    "sentence with a connective": ("Add them.\nSo, the final answer is 42.", 1, "So, the final answer is 42."),
    "sentence with a reason": ("Add.\nBased on this, the correct option is (B).", 1, None),
    "word": ("Add them.\nAnswer: 42", 1, "Answer: 42"),
    "bold word": ("Add them.\n**Answer:** 42", 1, "**Answer:** 42"),
    "heading": ("Add them.\n### Final Answer\n42", 1, "### Final Answer\n42"),
    "boxed": ("Add them.\nThus we get \\(\\boxed{42}\\) in all.", 1, "Thus we get \\(\\boxed{42}\\) in all."),
    "announced": ("Add them.\nTherefore, the sum is:\n\n\\[ \\boxed{42} \\]", 1, None),
    "twice": ("Add them.\nThe answer is 42.\n\\boxed{42}", 1, "The answer is 42.\n\\boxed{42}"),
    "chinese": ("三加四等于七。\n答案是 7。", 1, "答案是 7。"),
    "french": ("On ajoute.\nLa réponse est 42.", 1, "La réponse est 42."),
    "german": ("Wir addieren.\nAntwort: 42", 1, "Antwort: 42"),
    "label": ("It praises the cast.\nSentiment: positive", 1, "Sentiment: positive"),
    "bracket": ("Add them.\nTherefore, the answer (arabic numerals) is 12.", 1, None),
    "among letters": ("It burns.\nTherefore, among A through E, the answer is C.", 1, None),
    "letter, then its text": (
        "It melts.\nThe answer is A. Ice melts in the sun.",
        1,
        "The answer is A. Ice melts in the sun.",
    ),
    "announced in a line": ("It fits.\nGoing by these points:\nThe best answer is (B).", 1, None),
    "heading with its answer": ("Add them.\n### Answer: 42", 1, "### Answer: 42"),
    "none": ("Add them.\nSo they have 42 in all.", 2, None),
    "not at the end": ("The answer is near. Now add 3 and 4 to see it.", 2, None),
    "thought": ("<think>\nAdd 3 and 4.\nThat is 7.\n</think>\n\nThe sum is 7.", 2, "The sum is 7."),
    "thought with an answer": ("<think>Add.\nThe answer is 7.</think>Hi.", 1, "The answer is 7.</think>Hi."),
    "thought from the prompt": ("Add 3 and 4.\n</think>\n7", 1, "7"),
    "thought cut short": ("<think>\nAdd 3 and 4. Then", 2, None),
    "tag": ("Add them.\n<answer>7</answer>", 1, "<answer>7</answer>"),
}


@pytest.mark.parametrize(("response", "n", "answer"), ANSWERS.values(), ids=ANSWERS)
def test_the_final_answer_is_no_step(response, n, answer):
    chain = split_steps(response)
    assert len(chain.steps) == n
    if answer is not None:
        assert chain.answer.text == answer
    assert (chain.answer is None) == (
        response in {ANSWERS[name][0] for name in ("none", "not at the end", "thought cut short")}
    )


TALK = {
    "courtesy": ("Add.\nThe answer is 7.\n\nI hope this helps! Let me know if you have any questions.", ["Add."], 2),
    "without an answer": ("Add them. They have 7 in all. I hope this helps!", ["Add them.", "They have 7 in all."], 1),
    "a note": ("Add.\n**Answer: 42**\n\nNote that tax is left out. It would add 2.", ["Add."], 2),
    "a note in the chain": ("Note that 3 is odd.\nAdd 4.\nThe answer is 7.", ["Note that 3 is odd.", "Add 4."], 0),
    "reasons behind a note": (
        "Go.\nThe answer is 5.\nNote it.\nAdd.",
        ["Go.", "The answer is 5.", "Note it.", "Add."],
        0,
    ),
    "a conclusion behind a note": (
        "It is B. The answer is B. Note this. So add 3.",
        ["It is B.", "The answer is B.", "Note this.", "So add 3."],
        0,
    ),
    "an opening": ("Sure! Add 3 and 4.\nThe answer is 7.", ["Add 3 and 4."], 1),
    "behind the thinking": ("<think>Add.</think>\nIt is 7.\nFeel free to ask!", ["Add."], 1),
    "a condition": (
        "If you have 3 apples, you need 4.\nThat is 7.",
        ["If you have 3 apples, you need 4.", "That is 7."],
        0,
    ),
}


@pytest.mark.parametrize(("response", "steps", "n_talk"), TALK.values(), ids=TALK)
def test_talk_is_neither_step_nor_answer(response, steps, n_talk):
    chain = split_steps(response)
    assert [step.text for step in chain.steps] == steps
    assert len(chain.asides) == n_talk
    assert not any(aside.text in (chain.answer.text if chain.answer else "") for aside in chain.asides)


FIRST = {
    "bold line": ("**Answer: 20**\n\nStep 1: 4 * 5 = 20.\nStep 2: Stop.", "**Answer: 20**", 2, 0),
    "letter": ("Answer: B\nThe sun burns. A mirror does not.", "Answer: B", 2, 0),
    "word": ("Sentiment: positive\nThe cast is praised.\nThe plot is fun.", "Sentiment: positive", 2, 0),
    "again at the end": ("The answer is (B). It burns. It is hot. So the answer is B.", "So the answer is B.", 2, 1),
}


@pytest.mark.parametrize(("response", "answer", "n", "n_asides"), FIRST.values(), ids=FIRST)
def test_an_answer_ahead_of_the_steps_is_found_and_is_no_step(response, answer, n, n_asides):
    chain = split_steps(response)
    assert chain.answer_first and chain.answer.text == answer
    assert (len(chain.steps), len(chain.asides)) == (n, n_asides)


@pytest.mark.parametrize(
    "response",
    [
        "Answer: There are 15 trees. Then 21 stand there.",
        "Add them.\nAnswer: 7",
        "The answer is near. Now add.",
        "Answer: 7",
    ],
)
def test_an_answer_is_first_only_if_it_is_an_answer_and_steps_follow(response):
    assert not split_steps(response).answer_first


CHANNELS = "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>"


@pytest.mark.parametrize(
    "form",
    [
        *("<think>{}</think>{}", "[THINK]{}[/THINK]{}", "<seed:think>{}</seed:think>\n{}", "{}</think>{}", CHANNELS),
        *("analysis{}assistantfinal{}", "◁think▷{}◁/think▷{}", "<|START_THINKING|>{}<|END_THINKING|>{}"),
        "<|begin_of_thought|>\n{}\n<|end_of_thought|>\n\n<|begin_of_solution|>\n{}\n<|end_of_solution|>",
    ],
)
def test_marked_thinking_is_the_chain_and_the_rest_the_answer(form):
    response = form.format("Add 3 and 4.\nThat is 7.", "The sum is 7.")
    chain = split_steps(response)
    assert [step.text for step in chain.steps] == ["Add 3 and 4.", "That is 7."]
    assert chain.answer.text == visible(response) == "The sum is 7."
    assert thinking(response) == "Add 3 and 4.\nThat is 7."
    assert not is_thinking(response)


def test_thinking_may_be_missing_or_cut_short():
    assert (visible("Add. It is 7."), thinking("Add. It is 7.")) == ("Add. It is 7.", None)
    assert (visible("Well.<think>Add."), thinking("Well.<think>Add.")) == ("Well.", "Add.")
    assert is_thinking("[THINK]Add.") and not is_thinking("analysisAdd.")


PIECES = st.sampled_from(
    [
        *(
            "Add 3. ",
            "so on",
            "\n",
            "\n\n",
            " ",
            "\r\n",
            "1. ",
            "- ",
            "A. ",
            "(",
            ")",
            ":",
            "...",
            "e.g. ",
            "好。",
            "| a |\n",
        ),
        *("$x$ ", "$5 ", "\\[ a \\]", "```", "**B:**", "# H\n"),
        *(
            "The answer is 4.",
            "#### 4",
            "\\boxed{4}",
            "<think>",
            "</think>",
            "I hope this helps! ",
            "Note that ",
            "Sure! ",
        ),
    ]
)


@given(st.lists(PIECES, max_size=25).map("".join))
def test_steps_are_slices_in_order_and_lose_no_word(response):
    chain = split_steps(response)
    parts = sorted(
        [*chain.steps, *chain.asides, *([chain.answer] if chain.answer else [])], key=lambda part: part.start
    )
    end = 0
    lost = ""
    for part in parts:
        assert part.text == response[part.start : part.end] == part.text.strip() != ""
        assert part.start >= end
        lost += response[end : part.start]
        end = part.end
    lost += response[end:]
    for tag in ("<think>", "</think>"):
        lost = lost.replace(tag, "")
    # What precedes a first opening tag is no chain.
    if "think>" not in response:
        assert not any(character.isalnum() for character in lost)


def test_a_given_step_that_announces_the_answer_belongs_to_it():
    chain = given_steps(["Add them.", "So the total is:", "\\boxed{42}"])
    assert [step.text for step in chain.steps] == ["Add them."]
    assert chain.answer.text == "So the total is:\n\\boxed{42}"


def test_given_steps_are_kept_as_they_are():
    chain = given_steps(["Add them. Then stop.", "It is 42.", "The answer is 42."])
    assert chain.steps == (Step("Add them. Then stop.", 0, 20), Step("It is 42.", 21, 30))
    assert chain.answer.text == "The answer is 42."
    assert all(chain.response[step.start : step.end] == step.text for step in chain.steps)
