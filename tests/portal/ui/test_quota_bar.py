"""Geometry of the quota bar, in percent of its width."""

from portal.ui.quota_bar import BarSpan, quota_bar


def test_a_full_grant_ends_at_its_mark_and_the_queue_follows() -> None:
    bar = quota_bar(granted=4, used=4, queued=4, unit="GPU")
    assert (bar.used, bar.mark, bar.queued) == (BarSpan(0, 50), 50, BarSpan(50, 50))
    assert bar.sentence == "4 of 4 granted GPUs used, 0 borrowed, 4 queued"


def test_borrowed_units_are_drawn_past_the_mark() -> None:
    bar = quota_bar(granted=4, used=6, borrowed=2, unit="share")
    assert (bar.used, bar.mark, bar.borrowed) == (BarSpan(0, 50), 50, BarSpan(50, 25))
    assert bar.sentence == "6 shares used: 4 of 4 granted shares used, 2 borrowed, 0 queued"


def test_what_waits_inside_the_grant_is_drawn_over_free_units() -> None:
    bar = quota_bar(granted=2, used=0, queued=2, unit="GPU")
    assert (bar.track, bar.queued) == (BarSpan(0, 25), BarSpan(0, 25))


def test_after_a_lowered_grant_what_still_runs_passes_the_mark() -> None:
    bar = quota_bar(granted=2, used=4, unit="GPU")
    assert (bar.used, bar.mark) == (BarSpan(0, 50), 25)


def test_up_to_16_units_one_cell_is_one_unit() -> None:
    assert len(quota_bar(granted=16, used=3).cuts) == 15


def test_above_16_units_the_bar_is_continuous() -> None:
    assert quota_bar(granted=17, used=3).cuts == ()


def test_nothing_granted_nothing_drawn() -> None:
    bar = quota_bar(granted=0, used=0)
    assert (bar.track.width, bar.used.width, bar.queued.width, bar.mark, bar.cuts) == (0, 0, 0, 0, ())
