from ice_eval.operators.delete import Delete


def test_units_that_are_not_kept_are_gone(encoded, no_fills):
    found = Delete().build(encoded("a b c"), keep=[[True, False, True]], fills=no_fills)
    assert len(found) == 1
    assert found.ids.tolist() == encoded("a c").ids.tolist()


def test_removing_everything_leaves_the_template(encoded, no_fills):
    item = encoded("a b c")
    found = Delete().build(item, [[False, False, False]], fills=no_fills)
    assert found.keys() == item.empty().keys()


def test_all_tokens_of_a_unit_go_together(handmade, no_fills):
    item = handmade((10,), (20, 21), (30,))
    found = Delete().build(item, keep=[[True, False, True]], fills=no_fills)
    assert found.row(0).tolist() == [900, 10, 30, 901]


def test_it_asks_for_no_fills():
    assert not Delete().needs_fills
