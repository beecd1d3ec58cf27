import sys
import textwrap

import pytest

from ice_eval._registry import Registry, did_you_mean, plugin_packages
from ice_eval.attributions import attributions
from ice_eval.errors import ConfigError
from ice_eval.models import models
from ice_eval.nulls import nulls
from ice_eval.operators import operators
from ice_eval.tasks import tasks


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files -> the name of a new package that holds them; what was imported is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    built = set()

    def build(package, **files):
        built.add(package)
        (tmp_path / package).mkdir()
        for name, text in {"__init__": "", **files}.items():
            (tmp_path / package / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        return package

    yield build
    for name in [name for name in sys.modules if name.partition(".")[0] in built]:
        del sys.modules[name]


@pytest.fixture
def registry(folder):
    """A registry of fruits, over a folder that adds none."""
    package = folder("fruits")
    registry = Registry("fruit", package)
    for name in ("pear", "apple", "plum"):
        registry.add(name, name.upper())
    return registry


def test_a_name_gives_what_was_registered_under_it(registry):
    assert registry.get("pear") == "PEAR"
    assert "pear" in registry and "PEAR" not in registry


def test_names_and_items_are_sorted(registry):
    assert registry.names() == ["apple", "pear", "plum"]
    assert list(registry.items()) == [("apple", "APPLE"), ("pear", "PEAR"), ("plum", "PLUM")]


def test_a_wrong_name_gets_the_nearest_one_and_the_list(registry):
    with pytest.raises(
        ConfigError, match=r"^no fruit named 'aple'; did you mean 'apple'\? Known: apple, pear, plum\.$"
    ):
        registry.get("aple")


def test_options_are_refused_where_names_take_none(registry):
    with pytest.raises(
        ConfigError, match=r"^the fruit 'apple' takes no options, and got 'size=2'; give 'apple' alone\.$"
    ):
        registry.get("apple:size=2")


def test_a_name_like_no_other_gets_the_list_alone(registry):
    with pytest.raises(ConfigError, match=r"^no fruit named 'xyz'\. Known: apple, pear, plum\.$"):
        registry.get("xyz")


def test_a_name_is_given_once(registry):
    with pytest.raises(ConfigError, match=r"^two fruits are named 'pear'; rename one of them\.$"):
        registry.add("pear", "another")
    assert registry.get("pear") == "PEAR"


def test_files_of_the_folder_are_found_on_first_use_and_private_ones_are_not(folder):
    package = folder(
        "shelf",
        _base="from ice_eval._registry import Registry\nregistry = Registry('book', 'shelf')\n",
        novel="from shelf._base import registry\nregistry.add('novel', 1)\n",
        _hidden="from shelf._base import registry\nregistry.add('hidden', 2)\n",
    )
    registry = __import__(f"{package}._base", fromlist=["registry"]).registry
    assert f"{package}.novel" not in sys.modules
    assert registry.names() == ["novel"]


def test_the_folder_is_read_once(folder):
    package = folder(
        "once",
        _base="from ice_eval._registry import Registry\nregistry = Registry('thing', 'once')\n",
        one="from once._base import registry\nregistry.add('one', 1)\n",
    )
    registry = __import__(f"{package}._base", fromlist=["registry"]).registry
    assert registry.names() == ["one"]
    del sys.modules["once.one"]
    assert registry.names() == ["one"]


@pytest.fixture
def gadgets(folder, tmp_path):
    """The code of a plug-in of another package -> a registry that finds it by its entry point, named `far`."""

    def build(code):
        base = "from ice_eval._registry import Registry\nregistry = Registry('gadget', 'gadgets')\n"
        folder("gadgets", _base=base, near="from gadgets._base import registry\nregistry.add('near', int)\n")
        folder("elsewhere", far=code)
        metadata = tmp_path / "elsewhere-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n", encoding="utf-8")
        (metadata / "entry_points.txt").write_text("[ice_eval.gadgets]\nfar = elsewhere.far\n", encoding="utf-8")
        return __import__("gadgets._base", fromlist=["registry"]).registry

    return build


def test_a_plug_in_of_another_package_is_found_by_its_entry_point(gadgets):
    registry = gadgets("from gadgets._base import registry\nregistry.add('far', 'away')\n")
    assert registry.get("far") == "away"
    assert "elsewhere" in plugin_packages()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module", r"ModuleNotFoundError: No module named 'no_such_module'\."),
        ("raise ValueError('out of order.')", r"ValueError: out of order\."),
        ("", r"it registers no gadget named 'far'\."),
        (
            "from gadgets._base import registry\nregistry.add('far', 1)\nregistry.add('near', float)\n",
            r"two gadgets are named 'near' \(in builtins and builtins\); rename one of them\.",
        ),
    ],
    ids=["a missing package", "an error of its own", "nothing registered", "a name that is taken"],
)
def test_a_plug_in_that_cannot_be_loaded_is_named_every_time_with_its_package(gadgets, code, reason):
    registry = gadgets(code)
    whole = (
        r"^the gadget plug-in 'far' \(elsewhere\.far\) of the package elsewhere 1\.0 cannot be loaded: "
        rf"{reason} Fix or uninstall the package\.$"
    )
    for _ in range(2):
        with pytest.raises(ConfigError, match=whole):
            registry.get("near")


@pytest.mark.parametrize(
    ("known", "names"),
    [
        (attributions, {"attention", "gradient", "random"}),
        (models, {"smollm2", "toy"}),
        (nulls, {"contiguity", "frequency", "position", "size", "sub-word"}),
        (operators, {"delete", "infill"}),
        (tasks, {"demo", "sst2"}),
    ],
    ids=["attributions", "models", "nulls", "operators", "tasks"],
)
def test_what_ships_is_found_without_being_imported_by_name(known, names):
    assert names <= set(known.names())


@pytest.mark.parametrize("known", [attributions, models, nulls, operators, tasks], ids=lambda known: known.kind)
def test_every_plug_in_describes_itself_in_one_line(known):
    for name, item in known.items():
        line = (item.__doc__ or "").strip().partition("\n")[0]
        # A dataclass without a docstring gets its signature as one: that describes nothing.
        assert line.endswith(".") and not line.startswith(f"{item.__name__}("), name


def test_the_suggestion_is_a_full_stop_when_nothing_is_near():
    assert did_you_mean("mask", ["mask-unk", "delete"]) == "; did you mean 'mask-unk'?"
    assert did_you_mean("zzz", ["mask-unk", "delete"]) == "."
    assert did_you_mean("a", []) == "."
