import pytest

from ice_eval.subjects.chain import FinalAnswer, NumberAnswer, Unreadable

KIND = NumberAnswer()


def read(text):
    reading = KIND.read(text)
    return reading.value if isinstance(reading, FinalAnswer) else reading


READ = {
    # How numbers are written.
    "42": "42",
    "42.": "42",
    " 42 \n": "42",
    "-7": "-7",
    "−7": "-7",
    "+7": "7",
    "1,234": "1234",
    "1,234,567.89": "1234567.89",
    "$1,234.50": "1234.50",
    "-$5": "-5",
    "$-5": "-5",
    "€ 12": "12",
    "USD 12.50": "12.50",
    "25%": "25%",
    "25 percent": "25%",
    "25\\%": "25%",
    ".5": "0.5",
    "3/4": "3/4",
    "6/8": "3/4",
    "-3/4": "-3/4",
    "2 1/2": "5/2",
    "-2 1/2": "-5/2",
    "½": "1/2",
    "2½": "5/2",
    "2 ½ cups": "5/2",
    "\\frac{3}{4}": "3/4",
    "\\dfrac{3}{4}": "3/4",
    "\\frac34": "3/4",
    "-\\frac{3}{4}": "-3/4",
    "\\frac{-3}{4}": "-3/4",
    "2\\frac{1}{2}": "5/2",
    "1e3": "1000",
    "1.5e-3": "3/2000",
    "3 × 10^5": "300000",
    "3 \\times 10^{5}": "300000",
    "2.5 million": "2500000",
    "3 million dollars": "3000000",
    "12 apples": "12",
    "3 m/s": "3",
    "x = 5": "5",
    "**18**": "18",
    "0": "0",
    "007": "7",
    "1{,}234": "1234",
    "10\\,000": "10000",
    # Markers.
    "#### 42": "42",
    "Add.\n#### $1,250": "1250",
    "The answer is 42.": "42",
    "The answer is: 42 apples in 3 bags.": "42",
    "The answer is 3 + 4 = 7.": "7",
    "So the final answer is $\\boxed{-8}$.": "-8",
    "\\boxed{\\frac{1}{2}}": "1/2",
    "\\boxed{12 \\text{ cm}}": "12",
    "\\boxed{\\text{12}}": "12",
    "\\boxed{x = 12}": "12",
    "So it is \\boxed{12": "12",
    "\\boxed{\\{12\\}} and more, 13": "12",
    "Answer: 12": "12",
    "**Answer:** 12": "12",
    "**Final Answer**\n\n12": "12",
    "### Answer\n12 apples": "12",
    "The answer is:\n\n12": "12",
    "<answer>12</answer>": "12",
    "答案是 12。": "12",
    "La réponse est 12.": "12",
    "Die Antwort lautet 12.": "12",
    "The answer is about 3.5 hours. That is 210 minutes.": "3.5",
    # The last marker wins, and any marker wins over what is only said last.
    "The answer is 5. No, wait. The answer is 6.": "6",
    "\\boxed{5} is wrong, so \\boxed{6}.": "6",
    "Answer: 12. Wait, let me check: 3 * 4 = 12.": "12",
    "#### 5\n\nWe used 3 numbers.": "5",
    "The answer is \\boxed{5}, from 2 + 3.": "5",
    # Without a marker: the last sentence with a number, and what it says.
    "He has 3. She has 4. So they have 7.": "7",
    "They earn $80 x 3 = $240 from the last 80 fields.": "240",
    "So 5 * 4 = 20 and 20 + 1 = 21 in 3 days.": "21",
    "She spends $43.00 in 5 weeks.": "43.00",
    "In 4 weeks he reads **20** books.": "20",
    "He pays $30 and $18, for a total of $48 a year.": "48",
    "They have 7 apples.\nThat is what we looked for.": "7",
    "5-3=2": "2",
    "He gave 10 - 3 = 7 away": "7",
    "1 + (-3) = -2": "-2",
    # Reasons behind the number are not the number.
    "The answer is 8, since 3 + 1 = 4 and we double it.": "8",
    "The answer is 8 (because 16/2 = 8).": "8",
    "The answer is 100 metres, or 0.1 km.": "100",
    "\\boxed{3{,}200 \\text{ m}^2}": "3200",
}


@pytest.mark.parametrize("text", READ)
def test_numbers_are_read(text):
    assert read(text) == READ[text]


UNREADABLE = {
    "": "empty",
    "I do not like sums.": "does not hold a number",
    "The answer is unclear.": "no number follows the marker",
    "The answer is 5. No: the answer is hard to find.": "no number follows the marker",
    "\\boxed{x + y}": "no number follows the marker",
    "The answer is 3 and 5.": "several numbers",
    "The answer is 3 to 5.": "several numbers",
    "Answer: 3-5": "several numbers",
    "He has 3 cats and 4 dogs.": "several numbers",
    "She is 4.5 years old in 3 years.": "several numbers",
    "Answer: 7:30": "'7:30' is no number",
    "Answer: 3,5": "'3,5' is no number",
    "Answer: 1/2/2020": "no number",
    "Answer: 2.1.3": "no number",
    "Answer: 3/0": "no number",
    "1" * 5000: "too long",
    "Answer: 5x": "expression",
    "\\boxed{5^2}": "expression",
    "\\boxed{3\\pi}": "expression",
    "\\boxed{\\sqrt{16}}": "expression",
    "The answer is 3 * 4.": "expression",
    "The answer is 3 + 4.": "expression",
    "That leaves us with = 5 + 3": "expression",
    "The answer is not 5 but 6.": "deny",
    "The answer is x = 3 and y = 5.": "several numbers",
    "The answer is zwölf.": "no number",
    "Answer: 12. Wait, that is wrong.": "takes its answer back",
    "Answer: total - 15": "the sign of '15' is unclear",
    "Answer: 2 hours 30 minutes": "several numbers",
    "So there are twelve.": "is a word",
    "We add 3 and 4 = 7. It cannot be determined.": "no answer to be had",
    "There is not enough information, though 3 + 4 = 7 is known. I don't know.": "no answer to be had",
}


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_is_no_number_is_unreadable_and_says_why(text):
    reading = read(text)
    assert isinstance(reading, Unreadable)
    assert UNREADABLE[text] in reading.reason


@pytest.mark.parametrize(
    ("text", "by"), [("42", "whole"), ("#### 42", "marker"), ("So they have 42 now, all told.", "last")]
)
def test_a_reading_says_how_it_was_found(text, by):
    assert KIND.read(text).by == by


SAME = [
    ("42", "42.0"),
    ("42", "42.00"),
    ("0.5", "1/2"),
    ("$1,000", "1000"),
    ("2/3", "0.67"),
    ("2/3", "0.667"),
    ("0.3333333333333333", "0.3333333333333335"),
    ("0.3333333333333333", "1/3"),
    ("33.33", "33.333"),
    ("12.346", "12.35"),
    ("25%", "25"),
    ("25%", "0.25"),
    ("25%", "25.0%"),
    ("33.33%", "1/3"),
    ("2 1/2", "2.5"),
    ("-0", "0"),
    ("1e3", "1,000"),
    ("1'234", "1,234"),
    ("1 234", "1234"),
    ("1.234.567", "12,34,567"),
    ("１２", "twelve"),
    ("$12k", "12,000"),
    ("一百二十", "120"),
    ("两百", "200"),
    ("−$15", "minus 15"),
]
DIFFERENT = [
    ("42", "43"),
    ("42", "-42"),
    ("42", "42.4"),
    ("5.4", "5"),
    ("12.5", "12.46"),
    ("0.7", "2/3"),
    ("0.01", "0.0149"),
    ("12.34", "12.35"),
    ("25%", "0.26"),
    ("25%", "2500"),
    ("25%", "0.25%"),
    ("1,000", "1"),
    ("1/3", "1/4"),
    ("-15", "15"),
    ("1'234", "1.234"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_numbers_that_mean_the_same_are_equal(one, other):
    assert KIND.same(KIND.gold(one), KIND.gold(other))
    assert KIND.same(KIND.gold(other), KIND.gold(one))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_numbers_that_differ_are_not_equal(one, other):
    assert not KIND.same(KIND.gold(one), KIND.gold(other))
    assert not KIND.same(KIND.gold(other), KIND.gold(one))


@pytest.mark.parametrize(
    ("step", "states"),
    [
        ("In total 560+280 = 840 articles appear in 28 days.", True),
        ("So it is \\[ 560 + 280 = 840 \\]", True),
        ("They publish 840 articles.", True),
        ("Therefore, the answer is 840.", True),
        ("That equals $840.00 for all 3.", True),
        ("The first one publishes 20*28 = 560 articles.", False),
        ("So they publish 840 articles in 28 days.", True),
        ("Of the 840 articles, 20 are new.", False),
        ("Add the two results.", False),
    ],
)
def test_a_step_states_a_number_as_a_result_or_last(step, states):
    assert KIND.states(step, FinalAnswer("840", "marker")) == states


def test_a_number_of_the_question_is_stated_only_as_a_result():
    question = "Ann has 3 cats and twice as many dogs less 3. How many dogs?"
    answer = FinalAnswer("3", "marker")
    for step, states in [
        ("Ann has 3 cats.", False),
        ("So her 3 cats and 6 dogs less 3 remain.", False),
        ("So she has 2*3-3 = 3 dogs.", True),
        ("So she has 3 dogs.", True),
        ("This simplifies to 3 = D.", True),
        ("D = 3C + 2", False),
        ("D = 3(-2) + 8", False),
        ("D = 3 + 5 = 8", False),
    ]:
        assert KIND.states(step, answer, given=question) == states
