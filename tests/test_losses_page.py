"""docs/losses.md says what the registry says."""

import losses_page

import postmax as pm

PAGE = losses_page.PAGE.read_text()


def test_page_is_what_the_registry_says():
    assert losses_page.rewrite(PAGE) == PAGE, "run python benchmarks/losses_page.py"


def test_every_loss_has_a_line_and_a_picture():
    for name in pm.losses.names():
        assert f"| `{name}` |" in PAGE
    drawn = losses_page.families()
    assert sorted(name for names in drawn.values() for name in names) == sorted(pm.losses.names())
    for family in drawn:
        assert f"losses-{family}.png" in PAGE


def test_every_source_with_a_year_is_found_in_full():
    for name in pm.losses.names():
        source = pm.losses.describe(name).source
        assert not source[-4:].isdigit() or len(losses_page.paper(source)) > 40, name


def test_curves_of_cross_entropy():
    p, value, in_logit, in_p = losses_page.curves("ce")
    assert (value + p.log()).abs().max() < 1e-12
    assert (in_logit - (1 - p)).abs().max() < 1e-12
    assert (in_p - 1 / p).abs().max() < 1e-9
