from checkstream.scoring.breaker import Breaker


def opened(at: float = 0.0) -> Breaker:
    breaker = Breaker(failures=3, open_s=10.0)
    for _ in range(3):
        assert breaker.admit(at) == "pass"
        breaker.fail(at, probe=False)
    assert breaker.state == "open"
    return breaker


def test_opens_after_failures_in_a_row_only() -> None:
    breaker = Breaker(failures=3, open_s=10.0)
    for _ in range(5):
        breaker.fail(0.0, probe=False)
        breaker.fail(0.0, probe=False)
        breaker.succeed(probe=False)
    assert breaker.state == "closed"


def test_an_open_circuit_refuses_until_its_time_and_then_lets_one_probe_through_for_which_others_wait() -> None:
    breaker = opened()
    assert breaker.admit(9.9) == "refuse"
    assert breaker.admit(10.0) == "probe"
    assert breaker.state == "half_open"
    assert breaker.admit(10.0) == "wait"


def test_the_probe_closes_or_opens_again() -> None:
    breaker = opened()
    breaker.admit(10.0)
    breaker.succeed(probe=True)
    assert breaker.admit(10.0) == "pass"
    breaker = opened()
    breaker.admit(10.0)
    breaker.fail(10.0, probe=True)
    assert breaker.admit(19.9) == "refuse"
    assert breaker.admit(20.0) == "probe"


def test_late_results_from_before_the_opening_change_nothing() -> None:
    breaker = opened()
    breaker.succeed(probe=False)
    assert breaker.admit(9.9) == "refuse"
    assert breaker.admit(10.0) == "probe"
    breaker.succeed(probe=False)
    breaker.fail(10.0, probe=False)
    assert breaker.state == "half_open"


def test_an_abandoned_probe_is_given_to_the_next_request() -> None:
    breaker = opened()
    assert breaker.admit(10.0) == "probe"
    breaker.release()
    assert breaker.admit(10.0) == "probe"
    breaker.succeed(probe=True)
    breaker.release()
    assert breaker.state == "closed"


def test_g33_while_texts_of_one_share_alone_fail_others_go_on() -> None:
    breaker = Breaker(failures=3, open_s=10.0)
    for _ in range(3):
        breaker.fail(0.0, "a", probe=False)
    assert (breaker.state, breaker.admit(9.9, "a"), breaker.admit(9.9, "b")) == ("open", "refuse", "pass")
    breaker.succeed(probe=False)
    assert (breaker.admit(10.0, "a"), breaker.admit(10.0, "a"), breaker.admit(10.0, "b")) == ("probe", "wait", "pass")
    breaker.fail(10.0, "a", probe=True)
    assert (breaker.admit(19.9, "a"), breaker.admit(19.9, "b")) == ("refuse", "pass")
    for _ in range(9):  # the detector answers others, so a failure now and then is their text's
        breaker.fail(19.9, "b", probe=False)
        breaker.fail(19.9, "c", probe=False)
        breaker.succeed(probe=False)
    assert (breaker.admit(19.9, "a"), breaker.admit(19.9, "b")) == ("refuse", "pass")
    for _ in range(3):
        breaker.fail(19.9, "b", probe=False)
    assert (breaker.admit(19.9, "a"), breaker.admit(19.9, "b"), breaker.admit(19.9, "c")) == ("refuse",) * 3
    assert breaker.admit(30.0, "c") == "probe"
    breaker.succeed(probe=True)
    for _ in range(3):
        breaker.fail(30.0, "c", probe=False)
    assert (breaker.admit(30.0, "c"), breaker.admit(20.0, "a")) == ("refuse", "pass")


def test_failures_of_several_shares_open_it_for_all() -> None:
    breaker = Breaker(failures=3, open_s=10.0)
    for share in ("a", "b", "a"):
        breaker.fail(0.0, share, probe=False)
    assert (breaker.admit(9.9, "a"), breaker.admit(9.9, "c")) == ("refuse", "refuse")
