"""The names of the package."""

import pytest

import ice_eval


def test_a_star_import_gives_the_public_names_and_no_more():
    namespace = {}
    exec("from ice_eval import *", namespace)  # a star import is allowed at module level only
    del namespace["__builtins__"]
    assert sorted(namespace) == sorted(ice_eval.__all__)
    assert ice_eval.__all__ == sorted(ice_eval.__all__)
    assert all(value.__module__.startswith("ice_eval.") for value in namespace.values())


def test_dir_lists_the_public_names():
    assert set(ice_eval.__all__) < set(dir(ice_eval))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'ice_eval' has no attribute 'evalute'"):
        ice_eval.evalute  # noqa: B018
