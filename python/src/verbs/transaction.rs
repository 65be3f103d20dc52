//! `transaction`.

use std::ffi::CStr;
use std::time::Duration;

use pyo3::prelude::*;

use crate::call::{Call, Verb};
use crate::errors::Failure;
use crate::timeout;
use crate::transaction;

/// How long a transaction may be open, if the caller does not say.
const TTL: Duration = Duration::from_secs(30);

/// `transaction(*others, ttl=30, sync=None)`
pub(crate) struct Transaction;

impl Verb for Transaction {
    const NAME: &'static CStr = c"transaction";
    const HAS_TEMPLATE: bool = false;
    const CHANGES: bool = true;
    const HAS_OTHERS: bool = true;
    const DOC: &'static CStr = c"transaction($self, /, *others, ttl=30, sync=None)
--

Begin operations on this space, and others, that take effect together or not at all (rule X1).

As a context manager it commits at the end of its block. An exception in the block, the death of
the process, and the end of ttl undo everything: the taken tuples are back with identity, age and
place (X5). While the block runs, other callers do not see the tuples that it took. They may read the
tuples that it read, and not take them (X3). Nothing else is locked.

Args:
    others: other spaces, of the same kind: all shm:// or all mem://. `on` gives them.
    ttl: how long it may be open, in seconds. Deadlocks end by it (X6).
    sync: when the commit returns, as for `put`.

Returns:
    The Transaction. Its verbs put, take, read, ... work on this space; `on(other)` has the same.

Raises:
    Aborted: at any call, or at the end of the block: the ttl has passed.
    SpaceFull: at the end of the block: there is no room. Nothing happened.
    TransactionTooBig: at the end of the block: it changes more than one step can, some 600 000 tuples. Nothing happened.
    ValueError: the spaces are not of the same kind.

If the call ends early:
    Timeout of a verb in the block: the transaction stays open.
    Interruption of the block by an exception: everything is undone.
    Death of this process: everything is undone at once, unless the commit has happened.

>>> space.put(\"account\", \"alice\", 100)
>>> space.put(\"account\", \"bob\", 0)
>>> with space.transaction() as t:
...     _, _, a = t.take(\"account\", \"alice\", int)
...     _, _, b = t.take(\"account\", \"bob\", int)
...     t.put(\"account\", \"alice\", a - 10)
...     t.put(\"account\", \"bob\", b + 10)
>>> space.read_all(\"account\", str, int)
[('account', 'alice', 90), ('account', 'bob', 10)]
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [ttl] = call.keywords(["ttl"])?;
        let ttl = timeout::TTL.or(ttl, TTL)?;
        call.look_first()?;
        let spaces = transaction::spaces(call.handle_object(), call.fields)?;
        let others = spaces[1..].iter().map(|space| call.beside(&space.get().space()));
        let others: Vec<tupelo::Space> = others.collect();
        let others: Vec<&tupelo::Space> = others.iter().collect();
        let begun = call.space().transaction(&others, ttl)?;
        Ok(transaction::object(call.py, begun, spaces)?.into_any())
    }
}
