"""Students of rationales, against scikit-learn and a loop over the rows of the run."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from tests.rows import ledger_rows
from tests.small_runs import picks, run, texts
from tests.toy_runs import planted, reviews
from tests.toy_runs import run as toy_run

from ice_eval.analysis.measures import Missing
from ice_eval.analysis.measures.confidence import folds_of
from ice_eval.analysis.measures.random_sets import STUDENTS, Simulatability, StudentExample, _taught, right
from ice_eval.records import Kind
from ice_eval.results import InputRow


def ridge(bags, n_words, labels, folds):
    """The same student as scikit-learn has it: a word that every text has is the constant."""
    x = np.array([[*(word in bag for word in range(n_words)), True] for bag in bags], dtype=float)
    found = np.zeros(len(bags))
    for fold in set(folds):
        student = RidgeClassifier(alpha=1.0, fit_intercept=False).fit(x[folds != fold], labels[folds != fold])
        found[folds == fold] = student.predict(x[folds == fold]) == labels[folds == fold]
    return found


@pytest.mark.parametrize("n_labels", [2, 3])
def test_a_student_is_a_ridge_classifier_of_words(n_labels):
    rng = np.random.default_rng(n_labels)
    labels, folds = np.arange(60) % n_labels * 2, rng.permutation(60) % 5
    bags = [np.append(rng.integers(0, 30, 6), label) for label in labels]
    bags[3] = np.array([7, 7, 7])  # once or often is the same
    expected = ridge(bags, 30, labels, folds)
    assert right(bags, 30, labels, folds).tolist() == expected.tolist()
    assert expected.mean() > 0.6


@pytest.fixture(scope="module")
def found():
    both = ["sufficiency", "necessity"]
    methods = {"planted": planted, "hat": picks("hat")}
    return toy_run(reviews(60), attributions=methods, directions=both, operators=["delete"], m=40, n=60)


def test_rationales_that_hold_the_evidence_are_better_than_random(found):
    right_one, hat = Simulatability().of(found.folder).parts[0].lines
    assert (right_one["n"], right_one["verdict"]) == (60, "better than random")
    assert right_one["p_value"] == pytest.approx(2 / (STUDENTS + 1))
    assert right_one["mean"] > 0.9 > right_one["chance"] + 0.1
    assert hat["verdict"] == "not distinguishable from random"


def test_accuracies_are_those_of_plain_loops(found):
    [part] = Simulatability().of(found.folder).parts
    inputs = {row.example_id: row for part in found.folder.parts() for row in found.folder.inputs(part)}
    rows = [row for row in ledger_rows(found.folder) if row.key.direction == "necessity"]
    names, folds = list(inputs), folds_of(60, None, seed=0)
    words = {
        row.example_id: [row.fields["text"][s.start : s.end].lower() for s in row.spans] for row in inputs.values()
    }
    known = sorted({word for each in words.values() for word in each})
    full = {row.key.example_id: row for row in ledger_rows(found.folder) if row.key.kind == Kind.FULL}
    labels = np.array([int(np.argmax(full[name].scores)) for name in names])

    def bag(row):
        return {known.index(w) for unit, w in enumerate(words[row.key.example_id]) if unit not in row.kept}

    for line in part.lines:
        own = {row.key.example_id: row for row in rows if row.key.attribution == line["attribution"]}
        sets = {name: [] for name in names}
        for row in sorted((row for row in rows if row.key.kind == Kind.RANDOM), key=lambda row: row.key.set):
            of_example = own[row.key.example_id]
            if row.key.size == of_example.key.size and set(row.kept) != set(of_example.kept):
                sets[row.key.example_id].append(row)
        mine = ridge([bag(own[name]) for name in names], len(known), labels, folds)
        others = [
            ridge([bag(sets[name][number]) for name in names], len(known), labels, folds).mean()
            for number in range(STUDENTS)
        ]
        whole = [{known.index(w) for w in words[name]} for name in names]
        assert line["mean"] == pytest.approx(mine.mean())
        assert line["chance"] == pytest.approx(np.mean(others))
        assert line["full"] == pytest.approx(ridge(whole, len(known), labels, folds).mean())
        at_least = 1 + np.count_nonzero(np.array(others) >= mine.mean() - 1e-9)
        at_most = 1 + np.count_nonzero(np.array(others) <= mine.mean() + 1e-9)
        assert line["p_value"] == pytest.approx(min(1, 2 * min(at_least, at_most) / (STUDENTS + 1)))


def test_random_rationales_are_called_better_or_worse_no_more_often_than_the_level():
    """Texts whose words tell the label, of which a rationale and its random sets are alike draws."""
    rng, called = np.random.default_rng(0), []
    for _ in range(60):
        studied = []
        for number in range(30):
            units = np.append(rng.choice(np.arange(2, 40), 8, replace=False), number % 2)
            draws = [rng.choice(units, 3, replace=False) for _ in range(12 + number)]  # some have too few sets
            studied.append(StudentExample(InputRow(str(number), {}), number % 2, draws[0], tuple(draws[1:]), units))
        called.append(_taught(studied, 40, None, 0)["p_value"] <= 0.05)
    assert np.mean(called) <= 0.1


def test_too_few_random_sets_give_no_verdict():
    done = toy_run(reviews(30), attributions={"planted": planted}, operators=["delete"], m=10, n=30)
    [line] = Simulatability().of(done.folder).parts[0].lines
    assert line["verdict"] is None and line["p_value"] == pytest.approx(2 / 11)


def test_few_examples_or_one_label_are_not_enough(unannotated):
    missing = Simulatability().of(unannotated.folder)
    assert isinstance(missing, Missing) and "raise --n" in missing.reason
    stopping = run(texts(4), adaptive="examples", n=4)
    assert "--adaptive" in Simulatability().of(stopping.folder).reason
    positive = [record for record in reviews(60) if record["label"]]
    assert isinstance(Simulatability().of(toy_run(positive, n=30).folder), Missing)
