"""The classes of the entries in a case: dataclasses, made of what the case writes as text (M7).

A case has entries of one name with now these fields and now others, or other bases. Each such form
has a class here, of which an entry is put. An entry that is read becomes an instance of the one
class that goes by the name. So each name also has a class with room for every form: it has the
fields of all of them, and a field that an entry lacks is `ABSENT`.
"""

import dataclasses
import keyword
import re

from tupelo._native import parse_tuple, register

ABSENT = type("Absent", (), {"__repr__": lambda _: "ABSENT"})()
"""The value of a field that a stored entry does not have."""

PART = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[(){},:]|[^\s(){},:'"]+""")


class Entries:
    """The classes of a case, and the tuples that its texts stand for."""

    def __init__(self, steps):
        """Make the classes of all entries in these steps."""
        self._space = None
        forms = dict.fromkeys(form for text in texts_in(steps) for form in forms_in(text))
        self._written = {form: class_of(*form) for form in forms}
        fields = {}
        for name, _, names in forms:
            fields.setdefault(name, {}).update(dict.fromkeys(names))
        self._read = [class_of(name, (), names, absent=True) for name, names in fields.items()]

    @property
    def schema(self):
        """All classes, for `connect`: a space that is empty yet takes any number of one name."""
        return [*self._written.values(), *self._read]

    def connected(self, space):
        """Note a connection that was made with the schema: classes register through one."""
        self._space = space

    def tuple(self, text):
        """Return the tuple of a text, or the entry, of a class with just its fields and bases."""
        written = [self._written[form] for form in forms_in(text)]
        if not written:
            return parse_tuple(text)
        register(self._space, written)
        try:
            return parse_tuple(text)
        finally:
            register(self._space, self._read)


def class_of(name, bases, fields, *, absent=False):
    """Make a class of entries; its fields may be absent, or have no default."""
    is_usual = all(field.isidentifier() and not keyword.iskeyword(field) for field in fields)
    members = {"__tupelo_name__": name, "__annotations__": dict.fromkeys(fields, object)}
    if absent:
        members.update(dict.fromkeys(fields, ABSENT))
    if not is_usual:  # no argument of a function that `dataclass` writes could have such a name
        members["__init__"] = lambda entry, **given: vars(entry).update(given)
    ancestors = tuple(class_of(base, (), ()) for base in bases)
    made = type("Entry", ancestors, members)
    make = dataclasses.dataclass(init=is_usual, repr=is_usual, kw_only=not is_usual, eq=False)
    return make(made)


def is_entry(value):
    return dataclasses.is_dataclass(value)


def name_of(cls):
    return cls.__tupelo_name__


def bases_of(cls):
    return tuple(name_of(base) for base in cls.__mro__[1:] if dataclasses.is_dataclass(base))


def texts_in(data):
    """Return every text in the steps of a case, whatever it is for."""
    if isinstance(data, str):
        return [data]
    if isinstance(data, dict):
        data = data.values()
    return [text for item in data for text in texts_in(item)] if hasattr(data, "__iter__") else []


def forms_in(text):
    """Return name, bases and names of the fields of each entry in a text of the notation.

    In a template it also finds what looks like an entry, without its conditions: a class too many.
    """
    parts = PART.findall(text)
    forms, brackets = [], []
    for place, part in enumerate(parts):
        if part == "{" and parts[place - 1] != "in":  # `in {1, 2}` is a set
            forms.append((*head_of(parts[:place]), []))
            brackets.append(forms[-1][-1])
        elif part in {"(", "{"}:
            brackets.append([])  # of a value, in which nobody asks for names
        elif part in {")", "}"}:
            brackets.pop()
        # Behind another colon it is none that a name stands before: `name: glob:'a*'`.
        elif part == ":" and brackets and parts[place - 2] in {"{", ","}:
            brackets[-1].append(unquoted(parts[place - 1]))
    return [(name, bases, tuple(fields)) for name, bases, fields in forms]


def head_of(parts):
    """Return name and bases, of what stands before the brace that opens the fields."""
    if parts[-1] != ")":
        return unquoted(parts[-1]), ()
    opening = len(parts) - 1 - parts[::-1].index("(")
    bases = [unquoted(part) for part in parts[opening + 1 : -1] if part != ","]
    return unquoted(parts[opening - 1]), tuple(bases)


def unquoted(part):
    return part[1:-1] if part[0] in "'\"" else part
