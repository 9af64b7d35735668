"""Costs of the label's probability alone, against the formula in 40 digits."""

from cost_battery import cost_tester, every_check, mp

TESTERS = {
    "ce": cost_tester("ce", lambda p, y: -mp.log(p[y])),
    "mae": cost_tester("mae", lambda p, y: 1 - p[y]),
    "rce": cost_tester("rce", lambda p, y: -mp.log(mp.mpf("1e-4")) * (1 - p[y])),
    "gce": cost_tester("gce", lambda p, y: (1 - p[y] ** mp.mpf(0.7)) / mp.mpf(0.7)),
}


@every_check(TESTERS, compiled={"ce", "gce"})
def test_battery(name, check):
    getattr(TESTERS[name], check)()
