"""like, parse, REST: templates as objects."""

import pickle
from functools import partial, reduce
from operator import or_

import pytest

import tupelo as ts
from tupelo import REST, F, like, parse

TEXTS = [
    '("job", :int)',
    "()",
    "(...)",
    '("job", _, ...)',
    '("temp", > 30.0)',
    '("file", glob:"img/*.png" & != "img/old.png")',
    '("tile", 0..63, in {2, 3})',
    '("job", :int) | ("stop")',
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_and_template_are_the_same(text):
    template = parse(text)
    assert parse(str(template)) == template
    assert str(parse(str(template))) == str(template)


def test_like_makes_what_parse_makes():
    assert like("job", int) == parse('"job", :int')
    assert like("job", ..., REST) == parse("job, _, ...")
    assert like("temp", F > 30.0) == parse("temp, > 30.0")
    assert like("job", int) | like("stop") == parse('("job", :int) | ("stop")')
    assert like() == parse("()")


def test_templates_are_values():
    assert like("job", int) == like("job", int) != like("job", str)
    assert like("a") != "a"
    assert len({like("a"), like("a"), like("b")}) == 2
    template = like("job", F > 3, [1, None]) | like(REST)
    assert pickle.loads(pickle.dumps(template)) == template
    assert repr(like("job", int)) == '<Template ("job", :int)>'


def test_a_template_of_whatever_size_comes_back_from_a_pickle():
    named = parse('Job{id: > 3} where "id < 9" | (stop)')
    for template in (like("job", F.in_(range(200_000))), like("job", "x" * (1 << 20)), named):
        assert pickle.loads(pickle.dumps(template)) == template


def test_a_template_beyond_the_limits_is_refused_when_it_is_made(space):
    either = reduce(or_, (like("n", n) for n in range(256)))
    space.put("n", 255)
    assert space.count(either) == 1
    for make in (lambda: either | like("n", 256), lambda: like("n", 256) | either):
        with pytest.raises(ts.TemplateError, match="257 alternatives are over the limit of 256"):
            make()
    verbs = [space.try_take, space.count, space.read_all, partial(space.take, timeout=0), like]
    verbs += [partial(space.count, where="true"), lambda *given: parse(", ".join("_" * len(given)))]
    for _ in range(2):
        for verb in verbs:
            with pytest.raises(ts.TemplateError, match="65 fields are over the limit of 64: put"):
                verb(*range(65))
        space.put(*range(64))
    with pytest.raises(ts.TemplateError, match="65 fields are over the limit of 64"):
        space.count(*range(65), REST)
    assert space.count(*range(64), REST) == 2


def test_a_template_can_be_used_many_times_by_every_verb(space, new_url):
    jobs = like("job", F >= 2) | like("jobs")
    space.put_all([("job", n) for n in range(4)])
    space.put("jobs")
    assert space.count(jobs) == 3
    assert len(space.read_all(jobs)) == len(list(space.scan(jobs))) == 3
    assert space.read(jobs) in [("job", 2), ("jobs",)]
    assert space.try_swap(jobs, to=("swapped",)) is not None
    assert not space.put_if_absent("other", unless=jobs)
    with ts.connect(new_url(space.url.split(":")[0])) as other:
        assert space.move_to(other, jobs) == 2
    assert space.wait_none(jobs) is None


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: like("a", like("b")), "field 1 is a whole template"),
        (lambda: like(like("b"), 3), "field 0 is a whole template"),
        (lambda: like(REST, 3), "field 0 is REST before the end"),
        (lambda: like("a", F), "field 1 is F without a comparison"),
        (lambda: like("a") | "b", r"only a template can follow `\|` here"),
        (lambda: like("a", dict[str, int]), "field 1 is"),
        (lambda: like("a", complex), "field 1 is the class <class 'complex'>, which is no kind"),
        (lambda: parse('"job", :integer'), "expected .* at character"),
        (lambda: parse("(("), "is no template"),
    ],
)
def test_what_is_no_template_is_refused_with_its_place(use, message):
    with pytest.raises((ts.TemplateError, ts.NotEncodable), match=message) as caught:
        use()
    assert caught.value.hint


def test_a_sole_tuple_is_refused_by_every_verb(space):
    verbs = ["take", "read", "try_take", "try_read", "take_all", "read_all", "count", "scan"]
    verbs += ["consume", "finish", "wait_none", "explain"]
    for verb in verbs:
        with pytest.raises(TypeError, match=r"give its patterns, as in take\(\*t\)"):
            getattr(space, verb)(("job", int))
    with pytest.raises(TypeError, match=r"give its patterns, as in take\(\*t\)"):
        like(("job", int))
    with pytest.raises(TypeError, match=r"give its fields, as in put\(\*t\)"):
        space.put(("job", 1))
    assert space.count(REST) == 0


def test_a_tuple_whose_only_field_is_a_tuple_has_a_way_in_and_out(space):
    space.put_all([((1, 2),)])
    assert space.take(tuple) == ((1, 2),)
    space.put_all([((1, 2),)])
    assert space.take(F.in_([(1, 2)])) == ((1, 2),)
