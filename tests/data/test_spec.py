import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.spec import Option, parsed, settled
from tacit.errors import TacitError

words = st.text("abcxyz-_0123", min_size=1, max_size=6)


@given(words, st.dictionaries(words, words, max_size=4))
def test_what_is_written_is_read_back(name, options):
    spec = name + (":" + ",".join(f"{key}={value}" for key, value in options.items()) if options else "")
    assert parsed(spec) == (name, options)


@pytest.mark.parametrize("path", ["C:/data/log.csv", "dir:with/colon.csv", "a=b/c:d.csv", "plain"])
def test_colons_in_paths_are_no_options(path):
    assert parsed(path) == (path, {})
    assert parsed(path + ":duplicates=last") == (path, {"duplicates": "last"})


@pytest.mark.parametrize("spec", ["demo:users=", "demo:=3", "demo:users=3,items", "demo:users=3,users=4"])
def test_half_written_options_are_refused(spec):
    with pytest.raises(TacitError):
        parsed(spec)


OPTIONS = [Option("users", "7", "people", least=2), Option("mode", "a", "how", ("a", "b"))]


def test_defaults_fill_in():
    assert settled("x", OPTIONS, {"mode": "b"}) == {"users": "7", "mode": "b"}


@pytest.mark.parametrize(
    ("given_options", "message"),
    [
        ({"user": "3"}, "no option 'user'; did you mean 'users'"),
        ({"users": "1"}, "not a whole number of at least 2"),
        ({"users": "3.5"}, "not a whole number"),
        ({"users": "-4"}, "not a whole number"),
        ({"mode": "c"}, "mode=c is not known; known: a, b"),
    ],
)
def test_bad_options_say_what_is_known(given_options, message):
    with pytest.raises(TacitError, match=message):
        settled("x", OPTIONS, given_options)
