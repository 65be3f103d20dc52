//! The model against the conformance cases, what it says of histories and of time, and engines broken on purpose.

mod conformance;
mod faults;
mod history;
mod time;
