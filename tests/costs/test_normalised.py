"""Normalised costs, against the formula in 40 digits."""

from cost_battery import cost_tester, every_check, mp


def nce(p, y):
    return mp.log(p[y]) / sum(map(mp.log, p))


def nce_rce(p, y):
    return 10 * nce(p, y) - mp.log(mp.mpf("1e-4")) * (1 - p[y]) / 10


TESTERS = {
    "nce": cost_tester("nce", nce),
    "nce+rce": cost_tester("nce+rce", nce_rce, alpha=10, beta=0.1),
}


@every_check(TESTERS)
def test_battery(name, check):
    getattr(TESTERS[name], check)()
