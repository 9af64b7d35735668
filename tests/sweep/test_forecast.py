"""The forecast of a sweep, from its events."""

from __future__ import annotations

import pytest
from fake_runs import job

from postmax.runs import Progress
from postmax.sweep.events import Event
from postmax.sweep.forecast import Forecast


def progress(seconds_left):
    return Progress(1, 10, 0.5, None, seconds_left)


def test_forecast():
    now = [0.0]
    jobs = [job(number) for number in range(6)]
    forecast = Forecast(jobs, workers=2, expected={jobs[5].run_id: 100.0}, clock=lambda: now[0])
    assert forecast.seconds_left() is None
    forecast(Event("skipped", jobs[0]))
    forecast(Event("started", jobs[1]))
    forecast(Event("started", jobs[2]))
    now[0] = 4.0
    forecast(Event("progress", jobs[1], progress(6.0)))
    # One run takes 10 s and has 6 s to go. Runs of unknown duration are expected to take as long.
    assert forecast.seconds_left() == pytest.approx(max((6 + 10 + 10 + 10 + 100) / 2, 100))
    now[0] = 5.0
    assert forecast.seconds_left() == pytest.approx(100)
    forecast(Event("done", jobs[1]))
    forecast(Event("busy", jobs[2]))
    forecast(Event("failed", jobs[5]))
    assert forecast.seconds_left() == pytest.approx((5 + 5 + 5) / 2)
    assert (forecast.settled, forecast.total) == (3, 6)
    for one in jobs[2:5]:
        forecast(Event("skipped", one))
    assert forecast.seconds_left() == 0
