"""Tasks: their data, and how examples become inputs of a model."""

import functools
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeVar

from ice_eval._registry import Registry, did_you_mean
from ice_eval.choices import Order, SubjectName
from ice_eval.errors import ConfigError, DataError, is_broken
from ice_eval.records import Example, Span
from ice_eval.tasks._data import DataSource, FileData, HubData, with_groups


class Piece(NamedTuple):
    """A run of characters of a rendered prompt, from the template (`field` is None) or from a field."""

    text: str
    field: str | None = None


@dataclass(frozen=True)
class Template:
    """A parsed prompt. `{{` and `}}` are literal braces."""

    prompt: str
    parts: tuple[Piece, ...]
    """Literal text, and fields with their placeholder name."""

    @classmethod
    @functools.lru_cache(maxsize=256)
    def parse(cls, prompt: str) -> "Template":
        """Parse a prompt; raise `ConfigError` if it has no field, or a brace that opens no field."""
        parts: list[Piece] = []
        try:
            for literal, name, spec, conversion in string.Formatter().parse(prompt):
                parts += [Piece(literal)] if literal else []
                if name is not None:
                    if not name.isidentifier() or spec or conversion:
                        raise ValueError(f"'{{{name}}}' is not a field name")
                    parts.append(Piece(name, name))
        except ValueError as exc:
            raise ConfigError(
                f"the prompt {prompt!r} cannot be read: {exc}. Write fields as {{text}}, braces as {{{{ and }}}}."
            ) from exc
        template = cls(prompt, tuple(parts))
        if not template.fields:
            raise ConfigError(
                f"the prompt {prompt!r} has no field; put the text to explain in it, as in 'Review: {{text}}\\nLabel:'."
            )
        return template

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.field for part in self.parts if part.field is not None))

    def render(self, fields: Mapping[str, str]) -> list[Piece]:
        """Return the pieces of the prompt for one example; the text of a field is never read as a template."""
        return [part if part.field is None else Piece(fields[part.field], part.field) for part in self.parts]


@dataclass(frozen=True)
class Shot:
    """A worked example before the question, protected from every operator."""

    fields: Mapping[str, str]
    label: str


@dataclass(frozen=True)
class Wording:
    """Another wording of the same question: a prompt with the same fields, and its label words."""

    prompt: str
    label_words: Mapping[str, str] | None = None
    """None: those of the task."""


STANDARD, FEW_SHOT = "standard", "few-shot"
"""A task's own prompt, and any of its prompts with worked examples before the question."""


@dataclass(frozen=True, kw_only=True)
class AnyTask:
    """A task about texts (`Task`), chains of thought (`ReasoningTask`) or cited answers (`CitationTask`)."""

    subject: ClassVar[SubjectName] = "text"
    data: DataSource
    version: int = 1
    name: str = "custom"
    description: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class ChatTask(AnyTask):
    """A task whose prompt may be a turn of a chat."""

    chat: bool | None = False
    """True if the prompt is a user turn of the model's chat template, with shots as turns before it; None: where the
    model has one."""
    system: str | None = None
    """System turn of a chat; None: the template's default."""


@dataclass(frozen=True, kw_only=True)
class Task(ChatTask):
    """Data, prompt and label words of a classification."""

    prompt: str
    label_words: Mapping[str, str] = field(default_factory=dict)
    """Label name -> the words that a language model would write; a leading space belongs to the label."""
    shots: tuple[Shot, ...] = ()
    explain: tuple[str, ...] | None = None
    """Fields whose units are kept or removed; None: all fields of the prompt. Others are protected."""
    group: str | None = None
    """Field of the prompt that makes a group of the examples in which it is equal, such as a passage with several
    questions; None: any explained field. A column `group` of the data takes precedence."""
    classifier_prompt: str | None = None
    """Prompt for sequence classifiers, which were not trained on prompts; None: the bare fields, and for functions the
    prompt of a task of your own."""
    target_text: str | None = None
    """A text that a model wrote after the prompt, or a field of the data that holds it, as `{answer}`: its probability
    is explained, and there are no labels."""
    lexicon: frozenset[str] = frozenset()
    """Words that reveal the label, kept out of infill beside the label words."""
    language: str = "und"
    """Language of the texts and the prompt, as BCP 47 writes it (`fr`, `zh`); `und`: not given."""
    variants: Mapping[str, Wording] = field(default_factory=dict)
    """Other prompts by name; see `asked`."""
    max_characters: int | None = field(default=None, compare=False)
    """Largest number of characters of an explained text; the rest of it is not read."""
    max_tokens: int | None = field(default=None, compare=False)
    """Largest number of tokens of the explained texts; None: as many as the model takes."""
    worked: tuple[Shot, ...] = ()
    """Worked examples that become the shots of a few-shot prompt; see `asked`."""

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ConfigError(problem)

    def _problems(self) -> Iterator[str]:
        words = (*self.label_words, *self.label_words.values())
        for text in (self.name, self.prompt, self.classifier_prompt or "", self.system or "", *words):
            if is_broken(text):
                yield f"{text!r} holds half of a character (a lone surrogate), which no file can hold."
        known = self.template.fields
        for name in self.explained:
            if name not in known:
                yield f"cannot explain '{name}': the prompt has the fields {', '.join(known)}."
        if self.group is not None and self.group not in known:
            yield f"cannot group by '{self.group}': the prompt has the fields {', '.join(known)}."
        read = () if self.classifier_prompt is None else Template.parse(self.classifier_prompt).fields
        for name in read:
            if name not in known:
                yield f"the classifier's prompt has '{name}': the prompt has the fields {', '.join(known)}."
        if not self.explained:
            yield f"no field to explain; the prompt has {', '.join(known)}."
        for shot in self.shots:
            for name in known:
                if name not in shot.fields:
                    yield f"a shot lacks the field '{name}' of the prompt; it has {', '.join(shot.fields)}."
            if shot.label not in self.label_words:
                yield f"a shot has the label '{shot.label}', which is none of {', '.join(self.label_words)}."
        if self.system is not None and not self.chat:
            yield "a system prompt needs a chat; give --chat too."
        if self.target_text is not None and (self.label_words or self.shots):
            yield "a task about a text that a model wrote has neither labels nor shots; leave them out."
        if self.target_text is not None and not self.target_text.strip():
            yield "the text that the model wrote (--target-text) is empty."
        if len(self.label_words) < 2 and self.target_text is None:
            yield f"a task needs at least two labels, and {list(self.label_words)} was given; see --labels."
        if len(set(self.label_words.values())) < len(self.label_words):
            yield f"two labels have the same words: {', '.join(map(repr, self.label_words.values()))}."

    @property
    def _target_field(self) -> str | None:
        """Field of the data that holds the text which a model wrote."""
        text = (self.target_text or "").strip()
        return text[1:-1] if text[:1] == "{" and text[-1:] == "}" and text[1:-1].isidentifier() else None

    def continuation(self, fields: Mapping[str, str]) -> str | None:
        """Return the text that a model wrote about an example; None for tasks with labels."""
        return self.target_text if self._target_field is None else fields[self._target_field]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.label_words)

    @property
    def ways(self) -> tuple[str, ...]:
        """Arguments of `asked`: the names of the prompts, and `few-shot` where there are worked examples."""
        return (STANDARD, *self.variants, *((FEW_SHOT,) if self.worked else ()))

    def asked(self, *ways: str) -> "Task":
        """Return this task in another wording (`minimal`), with worked examples (`few-shot`), or both.

        The result is named after the ways, `sst2/minimal/few-shot`; the standard one keeps the name of the task.

        Raises:
            ConfigError: The task has no such prompt, or two wordings are given.
        """
        for way in ways:
            if way not in self.ways:
                raise ConfigError(
                    f"the task '{self.name}' has no prompt '{way}'{did_you_mean(way, list(self.ways))} "
                    f"Known: {', '.join(self.ways)}."
                )
        few, wordings = [way for way in ways if way == FEW_SHOT], [way for way in ways if way != FEW_SHOT]
        if len(few) > 1 or len(wordings) > 1:
            raise ConfigError(
                f"'{'/'.join((self.name, *ways))}' names several prompts; give one, and '{FEW_SHOT}' once."
            )
        other = [way for way in wordings if way != STANDARD]
        wording = self.variants[other[0]] if other else Wording(self.prompt)
        words = self.label_words if wording.label_words is None else wording.label_words
        if set(words) != set(self.label_words):
            raise ConfigError(
                f"the prompt {wording.prompt!r} has words for {', '.join(words)}, not for {', '.join(self.labels)}."
            )
        return replace(
            self,
            prompt=wording.prompt,
            label_words={label: words[label] for label in self.labels},  # labels are known by their place
            shots=self.worked if few else self.shots,
            name="/".join((self.name, *other, *few)),
        )

    @property
    def template(self) -> Template:
        return Template.parse(self.prompt)

    @property
    def explained(self) -> tuple[str, ...]:
        return self.template.fields if self.explain is None else self.explain

    def examples(self, limit: int | None = None) -> list[Example]:
        """Load the first `limit` examples, checked and cut; those that share a text form a group."""
        known = self.template.fields
        further = () if self._target_field is None or self._target_field in known else (self._target_field,)
        found = self.data.load((*known, *further), self.labels, limit=limit)
        for example in found if self.target_text is not None else ():
            if not (self.continuation(example.fields) or "").strip():
                raise DataError(f"{self.data.origin}: the text that a model wrote is empty in example '{example.id}'.")
        if self.max_characters is not None:
            found = [_cut(example, self.explained, self.max_characters) for example in found]
        return with_groups(found, explained=self.explained, group=self.group)

    @property
    def answers(self) -> tuple[str, ...]:
        """Text of each label as the model would write it: in a chat without the space before it."""
        return tuple(word.lstrip() if self.chat else word for word in self.label_words.values())

    def prompt_pieces(self, fields: Mapping[str, str]) -> list[Piece]:
        """Return the pieces that a language model reads without a chat: the shots, then the question."""
        question = self.template.render(fields)
        return [Piece("".join(f"{text}\n\n" for text in self.shot_texts)), *question] if self.shots else question

    @property
    def shot_texts(self) -> tuple[str, ...]:
        """The worked examples before a question, as a language model reads them without a chat."""
        return tuple(self._question(shot) + self.label_words[shot.label] for shot in self.shots)

    def _question(self, shot: Shot) -> str:
        return "".join(piece.text for piece in self.template.render(shot.fields))

    def turns(self) -> list[tuple[str, str]]:
        """Return role and text of the turns before the question, in a chat."""
        before = [] if self.system is None else [("system", self.system)]
        for shot in self.shots:
            before += [("user", self._question(shot)), ("assistant", self.label_words[shot.label].lstrip())]
        return before

    @property
    def classifier_text(self) -> str:
        return self.classifier_prompt or " ".join(f"{{{name}}}" for name in self.template.fields)

    def classifier_pieces(
        self, fields: Mapping[str, str], *, bare_pairs: bool = False
    ) -> tuple[list[Piece], list[Piece]]:
        """Return the pieces of a sequence classifier's text, up to the first field, and of its pair (possibly none).

        With `bare_pairs` only fields with nothing but spaces between them are a pair; any other prompt is one text.
        """
        pieces = Template.parse(self.classifier_text).render(fields)
        if bare_pairs and any(piece.field is None and piece.text.strip() for piece in pieces):
            return pieces, []
        first = next(index for index, piece in enumerate(pieces) if piece.field is not None)
        rest = pieces[first + 1 :]
        if not any(piece.field is not None for piece in rest):
            return pieces, []
        if rest[0].field is None:
            rest = [Piece(rest[0].text.lstrip()), *rest[1:]]
        return pieces[: first + 1], [piece for piece in rest if piece.text or piece.field is not None]


_Task = TypeVar("_Task", bound=AnyTask)
_Chat = TypeVar("_Chat", bound="ChatTask")
TaskFactory = Callable[[], AnyTask]
tasks: Registry[TaskFactory] = Registry(
    "task", "ice_eval.tasks", also=("ice_eval.subjects.chain.tasks", "ice_eval.subjects.context.tasks")
)
task = tasks.register
"""Register a function that returns a task; the first line of its docstring describes the task."""


def relabelled(task: Task, labels: Sequence[str]) -> Task:
    """Return a task with other labels in place of its own, in their order; its shots follow."""
    if len(labels) != len(task.labels):
        raise ConfigError(f"the task '{task.name}' has {len(task.labels)} labels, and {len(labels)} were given.")
    names = dict(zip(task.labels, labels, strict=True))
    shots = tuple(replace(shot, label=names[shot.label]) for shot in task.shots)
    return replace(task, label_words=label_words_of(task.prompt, labels), shots=shots, variants={}, worked=())


def _cut(example: Example, explained: Sequence[str], most: int) -> Example:
    """Return an example with the beginnings of its explained texts, and what is left of its human rationale."""
    ends = {name: most if name in explained else len(text) for name, text in example.fields.items()}
    spans = (Span(each.field, each.start, min(each.end, ends[each.field])) for each in example.human)
    return replace(
        example,
        fields={name: text[: ends[name]] for name, text in example.fields.items()},
        n_unread=sum(max(0, len(example.fields[name]) - most) for name in explained),
        human=tuple(span for span in spans if span.start < span.end),
    )


def read_as(task: Task, *, order: Order | None, max_characters: int | None, max_tokens: int | None = None) -> Task:
    """Return a task whose data are read as the settings of a run say; None: as the task says."""
    data, most = task.data, max_characters or task.max_characters
    if order == "stored" and isinstance(data, HubData):
        data = replace(data, shuffle_seed=None)
    return replace(task, data=data, max_characters=most, max_tokens=max_tokens)


def with_file(task: _Task, path: Path) -> _Task:
    """Return a task with another file in place of its data; column names stay if the data were a file."""
    return replace(task, data=FileData(path, task.data.columns if isinstance(task.data, FileData) else {}))


def in_chat(task: _Chat, chat: bool | None, system: str | None) -> _Chat:
    """Return a task with its prompt as a turn of a chat or not; None for both: the task's own setting."""
    if chat is None and system is None:
        return task
    return replace(task, chat=task.chat if chat is None else chat, system=system)


def label_words_of(prompt: str, labels: Sequence[str]) -> dict[str, str]:
    """Return labels as they would follow a prompt: a space goes before each unless the prompt ends in whitespace."""
    space = "" if prompt[-1:].isspace() else " "
    return {label: space + label for label in labels}


def adhoc_task(
    data: DataSource,
    *,
    prompt: str,
    labels: Sequence[str] = (),
    target_text: str | None = None,
    explain: Sequence[str] | None = None,
    name: str = "custom",
) -> Task:
    """Return a task from flags."""
    return Task(
        data=data,
        prompt=prompt,
        classifier_prompt=prompt,
        label_words=label_words_of(prompt, labels),
        target_text=target_text,
        explain=None if explain is None else tuple(explain),
        name=name,
    )
