//! The native half of the Python package `tupelo`: argument conversion and errors, no logic.
//!
//! Every verb of a space is one call into the facade crate. The Python arguments become borrowed fields and patterns
//! that point into the caller's own objects. Results are built as Python objects straight from the stored bytes. Rules
//! and engines live below, in `crates/`. `consume`, `finish`, `spawn` and other compositions live above, in
//! `python/tupelo/`.
//!
//! * `call`: the arguments of a verb; the only place where raw pointers from Python come in. `keywords`: its keywords.
//! * `arguments`, `values`, `arrays`, `objects`: Python objects to fields; `results`: and back. `sent`: values of tasks.
//! * `entries`: classes with named fields, and their instances. `carried`: fields that the classes do not know.
//! * `patterns`, `formals`, `template`: the tests of fields; `F`, `like` and `parse`.
//! * `verbs`: one file per family of operations; `waiting`: how the blocking ones wait.
//! * `search`: one match from one of several spaces. `announced`: the processes that serve functions.
//! * `claim`, `lease`, `transaction`, `subscription`: what `claim`, `put`, `transaction` and `subscribe` return.
//! * `errors`, `refusal`: failures as exceptions. `unreadable`: a tuple that cannot be made.
//! * `renewal`: a connection that goes on when its space was removed.
//! * `fork`: the objects that a child process may not use; `orphan`: a process that ends with its parent.
//! * `recorded`: the words and the file of `tupelo record`.
//! * `surroundings`: the interpreter's lock, and Ctrl-C, around what waits for a server.
//! * `command_line`: the program `tupelo`, for the wheel's console script.
#![allow(unsafe_code, reason = "the boundary to the C interface of Python")]

use pyo3::prelude::*;

mod announced;
mod arguments;
mod arrays;
mod call;
mod carried;
mod claim;
mod command_line;
mod conditions;
mod entries;
mod errors;
mod fork;
mod formals;
mod keywords;
mod known;
mod lease;
mod numpy;
mod objects;
mod order;
mod orphan;
mod patterns;
mod recorded;
mod refusal;
mod renewal;
mod results;
mod search;
mod sent;
mod space;
mod subscription;
mod surroundings;
mod template;
mod timeout;
mod transaction;
mod unreadable;
mod values;
mod verbs;
mod waiting;

/// The module `tupelo._native`.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::announced::{AnnouncementObject, announce, is_announced};
    #[pymodule_export]
    use super::claim::Claim;
    #[pymodule_export]
    use super::command_line::{command_line, typed_s};
    #[pymodule_export]
    use super::entries::{register, require_clear};
    #[pymodule_export]
    use super::fork::{after_fork, stays_behind};
    #[pymodule_export]
    use super::formals::{FieldOrder, FieldProxy, Formal, Rest, decode_formal};
    #[pymodule_export]
    use super::keywords::require_keywords;
    #[pymodule_export]
    use super::lease::Lease;
    #[pymodule_export]
    use super::orphan::end_with_parent;
    #[pymodule_export]
    use super::recorded::{record_line, record_problem, record_words};
    #[pymodule_export]
    use super::renewal::{pinned, renewed};
    #[pymodule_export]
    use super::search::{Found, SearchObject, SearchWaiterObject};
    #[pymodule_export]
    use super::sent::Sent;
    #[pymodule_export]
    use super::space::{
        Handle, adopt, at_once, flush_files, is_on_disk, is_same, plain, remove, require_sync,
        settle_up_to, spaces, unsettled,
    };
    #[pymodule_export]
    use super::subscription::{Subscription, no_event};
    #[pymodule_export]
    use super::template::{Template, decode_template, like, parse, parse_tuple, put_text};
    #[pymodule_export]
    use super::transaction::{InsideObject, TransactionObject};
    #[pymodule_export]
    use super::verbs::bulk::try_take_many;
    #[pymodule_export]
    use super::verbs::claim::claim_partly;
    #[pymodule_export]
    use super::verbs::look::Explanation;
    #[pymodule_export]
    use super::verbs::notifier::NotifierObject;
    #[pymodule_export]
    use super::verbs::wait_none::present;
    #[pymodule_export]
    use super::verbs::waiter::{WaiterObject, claimant, seconds, time_limit, timed_out, waiter};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        tupelo::surround(&super::surroundings::INTERPRETER);
        super::verbs::define_all(&module.py().get_type::<Handle>())
    }
}
