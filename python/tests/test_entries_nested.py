"""A class of entries as the pattern of a field that is an entry itself (M5, M7)."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

import tupelo as ts
from tupelo import F, like


@dataclass
class Customer:
    name: str


@dataclass
class Vip(Customer):
    level: int = 1


@dataclass
class Supplier:
    name: str


@dataclass
class Order:
    number: int
    customer: object


def test_a_class_matches_a_field_that_is_one_of_its_entries_m5(space):
    space.put(Order(1, Supplier("a")))
    space.put(Order(2, "Customer"))
    space.put(Order(3, {"name": "a"}))
    space.put(Order(4, None))
    assert space.try_take(Order, customer=Customer) is None
    space.put(Order(5, Customer("a")))
    space.put(Order(6, Vip("b", 3)))
    assert space.count(Order, customer=Customer) == 2
    assert space.count(Order, customer=Vip) == 1
    assert space.count(Order, customer=Customer | None) == 3
    assert space.count(Order, customer=~(F == "x") & Supplier) == 1
    assert space.take(Order, customer=Vip) == Order(6, Vip("b", 3))
    assert space.take(Order, customer=Customer) == Order(5, Customer("a"))
    assert space.take(Order, customer=Supplier) == Order(1, Supplier("a"))
    assert space.count(Order) == 3


def test_a_class_matches_a_field_of_a_plain_tuple_m5(space):
    space.put("order", Supplier("a"))
    space.put("order", Customer("b"))
    assert space.read("order", Customer) == ("order", Customer("b"))
    assert space.count("order", F.in_([Customer("b")])) == 1
    assert space.take(like("order", Customer)) == ("order", Customer("b"))
    assert space.try_take("order", Customer) is None
    assert space.take("order", Supplier) == ("order", Supplier("a"))


def test_who_waits_for_an_entry_in_a_field_is_handed_only_such_m5(space):
    waiting = space.take_future("order", Customer)
    events = space.subscribe("order", Customer)
    space.put("order", Supplier("a"))
    space.put("order", Vip("b"))
    assert waiting.result(60) == ("order", Vip("b"))
    assert events.next(timeout=60).tuple == ("order", Vip("b"))
    assert space.take_all("order", ...) == [("order", Supplier("a"))]


WAITER = """
import sys, tupelo as ts
from dataclasses import dataclass

@dataclass
class Customer:
    name: str

with ts.connect(sys.argv[1]) as space:
    print(space.take("order", Customer, timeout=60)[1].name)
"""


def test_another_process_that_waits_is_handed_only_such_m5(shm, eventually):
    command = [sys.executable, "-c", WAITER, shm.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiter:
        eventually(lambda: shm.stat()["waiters"] == 1)
        shm.put("order", Supplier("a"))
        shm.put("order", Customer("b"))
        output, _ = waiter.communicate(timeout=60)
    assert output == "b\n"


def test_a_miss_says_that_a_class_was_asked_for_m5(space):
    space.put("order", Supplier("a"))
    with pytest.raises(ts.Timeout, match=r'"order", :entry\(Customer\)'):
        space.take("order", Customer, timeout=0)
    explained = space.explain("order", Customer)
    assert explained.differences == [(1, 'Supplier{name: "a"}', ":entry(Customer)")]


def test_the_notation_has_it_m5():
    assert str(like("order", Customer)) == '("order", :entry(Customer))'
    assert ts.parse('"order", :entry(Customer)') == like("order", Customer)
    assert str(like(Order, customer=Customer | None)) in {
        "Order{customer: :null | :entry(Customer)}",
        "Order{customer: :entry(Customer) | :null}",
    }


def test_on_its_own_a_class_is_a_template_of_entries_m7(space_of_customers):
    assert space_of_customers.take(Customer) == Customer("a")
    assert space_of_customers.try_take(Customer) is None


@pytest.fixture
def space_of_customers(new_url):
    with ts.connect(new_url("mem")) as space:
        space.put("order", Customer("b"))
        space.put(Customer("a"))
        yield space


def test_a_class_that_is_no_class_of_entries_is_refused_m5(space_of_customers):
    with pytest.raises(ts.TemplateError, match="which is no kind of field"):
        space_of_customers.take("order", ValueError)
