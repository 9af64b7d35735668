"""How far long work is: told by whoever works, heard by whoever listens, and written as few lines."""

from postmax.progress import Lines, Stage, is_silent, listening, never_silent, silent, tell


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def written(stages, **options):
    """The lines for stages that are told one second after another, or as many as each says."""
    clock, said = Clock(), []
    lines = Lines(said.append, clock=clock, **options)
    for wait, stage in stages:
        clock.now += wait
        lines(stage)
    return said


def test_a_stage_in_words():
    assert str(Stage("reading", 0, 0)) == "reading: 0 of 0 (100 %)"
    assert str(Stage("fitting", 7, unit="steps")) == "fitting: 7 steps"
    assert str(Stage("downloading x", 1.5, 170.498, "MB")) == "downloading x: 1.5 of 170.5 MB (1 %)"
    assert str(Stage("waiting for x")) == "waiting for x"


def test_nobody_has_to_listen():
    tell(Stage("alone"))
    heard = []
    with listening(heard.append):
        tell(Stage("outer"))
        with listening(lambda _: None):
            tell(Stage("inner"))
        tell(Stage("outer again"))
    tell(Stage("alone again"))
    assert [stage.what for stage in heard] == ["outer", "outer again"]


def test_a_line_for_each_tenth_and_never_a_thousand():
    said = written([(1.0, Stage("work", done, 1000)) for done in range(1, 1001)])
    assert len(said) < 40
    assert said[-1] == "work: 1000 of 1000 (100 %)"
    assert not any("\r" in line for line in said)


def test_short_work_is_not_mentioned():
    assert written([(0.1, Stage("work", done, 10)) for done in range(11)]) == []


def test_slow_work_has_a_line_each_half_minute():
    said = written([(10.0, Stage("fitting", done, unit="steps")) for done in range(1, 11)])
    assert said == ["fitting: 4 steps", "fitting: 7 steps", "fitting: 10 steps"]
    assert written([(10.0, Stage("work", done, 10)) for done in range(1, 11)], share=None) == [
        "work: 4 of 10 (40 %)",
        "work: 7 of 10 (70 %)",
        "work: 10 of 10 (100 %)",
    ]


def test_work_that_begins_again_is_new_work():
    stages = [(3.0, Stage("work", done, 3)) for _ in range(2) for done in (1, 2, 3)]
    assert written(stages) == ["work: 2 of 3 (67 %)", "work: 3 of 3 (100 %)"] * 2


def test_works_inside_each_other_do_not_hide_the_outer_one():
    stages = [
        (1.0, stage) for n in range(1, 101) for stage in (Stage("in", 1, 2), Stage("in", 2, 2), Stage("out", n, 100))
    ]
    said = written(stages)
    assert [line for line in said if line.startswith("out")][-1] == "out: 100 of 100 (100 %)"
    assert len(said) < 30


def test_messages_are_passed_on_at_once():
    assert written([(0.0, Stage("waiting for x"))]) == ["waiting for x"]


def test_long_work_is_never_silent_unless_somebody_asked_for_silence(capfd):
    with never_silent():
        tell(Stage("waiting for x"))
    assert capfd.readouterr().err == "waiting for x\n"
    assert not is_silent()
    with listening(silent), never_silent():
        assert is_silent()
        tell(Stage("waiting for x"))
    heard = []
    with listening(heard.append), never_silent():
        tell(Stage("waiting for x"))
    assert capfd.readouterr().err == ""
    assert len(heard) == 1
