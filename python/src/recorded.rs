//! What `tupelo record` needs of this module: the words of a tuple or a template, and a place for lines.
//!
//! A line goes into memory that is mapped from a file of this process. A store into it reaches the kernel at once, so a
//! killed process loses no line, and no line costs a system call. The file has no descriptor, which the program might
//! close and get for a file of its own. When it is full the next one is made, larger up to a limit; a forked child
//! makes one, too. The unused rest of each file is zeros.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::hash::Hasher;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::{env, mem, process, ptr};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::time::{ClockId, clock_gettime};

use tupelo::{Alternative, Array, DType, Form, Kind, Map, Pattern, Value};

use crate::formals::Rest;
use crate::{patterns, template};

/// Names the folder of the files.
const VARIABLE: &str = "TUPELO_RECORD";
/// A value that is longer is recorded as its digest.
const LONG_BYTES: usize = 64;
/// Most processes do little, and there may be thousands.
const FIRST_BYTES: usize = 1 << 16;
/// Each file is four times as large as the one before, so often.
const GROWTHS_MAX: u32 = 3;

// --- words ---

/// The kinds of a tuple's or a template's fields, and a word for each: two lists, as JSON. A template that is more than
/// its fields (an entry, alternatives, a condition) is one word.
#[pyfunction]
pub(crate) fn record_words(
    fields: &Bound<'_, PyTuple>,
    named: &Bound<'_, PyDict>,
) -> PyResult<(String, String)> {
    let alternatives = match template::like(fields, Some(named)) {
        Ok(template) => template.template().alternatives().to_vec(),
        Err(why) if named.is_empty() && why.is_instance_of::<PyException>(fields.py()) => {
            vec![described(fields)?]
        }
        Err(why) => return Err(why),
    };
    let alternatives: Vec<Alternative> = alternatives.into_iter().map(shortened).collect();
    if let [Alternative { patterns, form: form @ (Form::Exact | Form::Rest), condition: None }] =
        &alternatives[..]
    {
        let rest = (*form == Form::Rest).then_some("...");
        let kinds = patterns.iter().map(kind).chain(rest.map(|_| OTHER));
        let words = patterns.iter().map(ToString::to_string).chain(rest.map(ToOwned::to_owned));
        return Ok((json(kinds), json(words)));
    }
    let whole: Vec<String> = alternatives.iter().map(ToString::to_string).collect();
    Ok((json([OTHER]), json([whole.join(" | ")])))
}

/// As [`template::like`], where a field is an object that is stored as a pickle, which has no text.
fn described(fields: &Bound<'_, PyTuple>) -> PyResult<Alternative> {
    let mut described = Alternative::default();
    for (index, field) in fields.iter().enumerate() {
        if field.is_instance_of::<Rest>() && index + 1 == fields.len() {
            described.form = Form::Rest;
            continue;
        }
        described.patterns.push(match patterns::pattern_at(&field, index) {
            Ok(pattern) => pattern,
            Err(why) if why.is_instance_of::<PyException>(field.py()) => {
                let class = field.get_type().qualname()?.to_string();
                Value::Tuple(vec!["tupelo.object".into(), class.into()]).into()
            }
            Err(why) => return Err(why),
        });
    }
    Ok(described)
}

const OTHER: &str = "other";

/// The kind of a value, or of the values that a formal stands for.
fn kind(pattern: &Pattern) -> &'static str {
    let kind = match pattern {
        Pattern::Actual(value) => Some(value.kind()),
        Pattern::Kinds(kinds) => kinds.single(),
        Pattern::Test(_) => None,
    };
    match kind {
        Some(Kind::Null) => "null",
        Some(Kind::Bool) => "bool",
        Some(Kind::Int) => "int",
        Some(Kind::Float) => "float",
        Some(Kind::Str) => "str",
        Some(Kind::Bytes) => "bytes",
        Some(Kind::Array) => "array",
        _ => OTHER,
    }
}

fn shortened(mut alternative: Alternative) -> Alternative {
    for pattern in &mut alternative.patterns {
        if let Pattern::Actual(value) = pattern {
            *value = short(mem::replace(value, Value::Null));
        }
    }
    alternative
}

/// The value, or one of its kind that stands for it in a record. Equal values have equal digests, so that a template
/// finds the same tuples.
fn short(value: Value) -> Value {
    let data: &[u8] = match &value {
        Value::Str(text) => text.as_bytes(),
        Value::Bytes(bytes) => bytes,
        Value::Array(array) => array.data(),
        Value::List(_) | Value::Tuple(_) | Value::Map(_) => &value.to_string().into_bytes(),
        _ => return value,
    };
    if data.len() <= LONG_BYTES {
        return value;
    }
    // Of one installation, so all processes of a record have the same one.
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(data);
    let digest = format!("digest {:016x}", hasher.finish());
    match value {
        Value::Bytes(_) => Value::Bytes(digest.into_bytes()),
        Value::Array(_) => {
            let shape = [digest.len() as u64];
            Array::new(DType::U8, &shape, digest.into_bytes()).map_or(Value::Null, Value::Array)
        }
        Value::List(_) => Value::List(vec![digest.into()]),
        Value::Tuple(_) => Value::Tuple(vec![digest.into()]),
        Value::Map(_) => Map::new([(digest.into(), Value::Null)]).map_or(Value::Null, Value::Map),
        _ => digest.into(),
    }
}

/// A list of texts.
fn json(texts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut list = String::from("[");
    for (index, text) in texts.into_iter().enumerate() {
        list.push_str(if index > 0 { ", " } else { "" });
        push_json(&mut list, text.as_ref());
    }
    list.push(']');
    list
}

fn push_json(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\0'..='\x1f' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character)); // a text takes it always
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

// --- lines ---

/// The files of this process.
static FILES: Mutex<Files> = Mutex::new(Files { room: None, stopped: 0, warned: 0 });

/// Locked for a moment only. A signal handler of Python never runs in it, and a fork of Python neither.
struct Files {
    room: Option<Room>,
    /// The process that has given up to write.
    stopped: u32,
    /// The process that has said something.
    warned: u32,
}

/// Append a line of this process for an operation in the space at `url`; `particular` is JSON without braces. Where it
/// has no room, nothing more is written from here.
#[pyfunction]
pub(crate) fn record_line(url: &str, verb: &str, particular: &str) {
    let pid = process::id();
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if files.stopped == pid {
        return;
    }
    let now = clock_gettime(ClockId::Monotonic);
    let time_ns = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
    let mut line = format!("{{\"time_ns\": {time_ns}, \"pid\": {pid}, \"space\": ");
    push_json(&mut line, url);
    let _ = writeln!(line, ", \"verb\": \"{verb}\", {particular}}}"); // as above
    if let Err(why) = files.append(pid, line.as_bytes()) {
        files.stopped = pid;
        files.warn(pid, &format!("process {pid} is no longer recorded: {why}"));
    }
}

/// Say on standard error what is not recorded, if this process has said nothing yet.
#[pyfunction]
pub(crate) fn record_problem(problem: &str) {
    FILES.lock().unwrap_or_else(PoisonError::into_inner).warn(process::id(), problem);
}

impl Files {
    fn append(&mut self, pid: u32, line: &[u8]) -> io::Result<()> {
        let last = self.room.as_mut().filter(|room| room.pid == pid);
        let number = match last {
            Some(room) if room.bytes - room.used >= line.len() => {
                room.append(line);
                return Ok(());
            }
            Some(room) => room.number + 1,
            None => 0,
        };
        let folder = env::var_os(VARIABLE)
            .ok_or_else(|| io::Error::other(format!("{VARIABLE} is not set any more")))?;
        let mut room = Room::new(Path::new(&folder), (pid, number), line.len())?;
        room.append(line);
        self.room = Some(room);
        Ok(())
    }

    fn warn(&mut self, pid: u32, problem: &str) {
        if mem::replace(&mut self.warned, pid) != pid {
            let _ = writeln!(io::stderr(), "tupelo record: {problem}"); // it may be closed
        }
    }
}

/// A file, mapped.
struct Room {
    place: *mut u8,
    bytes: usize,
    used: usize,
    pid: u32,
    number: u32,
}

// SAFETY: the map belongs to this value alone, and is no thread's.
unsafe impl Send for Room {}

impl Room {
    /// Makes file `number` of a process, or the next that was not made before; it has room for `line_bytes`.
    fn new(folder: &Path, (pid, mut number): (u32, u32), line_bytes: usize) -> io::Result<Self> {
        let open = |number| {
            let path = folder.join(format!("{pid}-{number}.jsonl"));
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
        };
        let mut file: File = loop {
            match open(number) {
                // Of a process that had this number before.
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => number += 1,
                opened => break opened?,
            }
        };
        let bytes = (FIRST_BYTES << (2 * number.min(GROWTHS_MAX))).max(line_bytes);
        // All its blocks: a store that finds none would end the program.
        io::copy(&mut io::repeat(0).take(bytes as u64), &mut file)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new map, at a place that the kernel chooses.
        let place = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, &file, 0) }?;
        Ok(Self { place: place.cast(), bytes, used: 0, pid, number })
    }

    /// Appends a line, for which there must be room.
    fn append(&mut self, line: &[u8]) {
        assert!(self.bytes - self.used >= line.len(), "there is room for the line");
        // SAFETY: inside of the map, by the check above, which nobody else in this process writes to.
        let end = unsafe { self.place.add(self.used) };
        // SAFETY: as above; the line is no part of the map.
        unsafe { ptr::copy_nonoverlapping(line.as_ptr(), end, line.len()) };
        self.used += line.len();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: the map of `new`, which is used no more.
        let _ = unsafe { munmap(self.place.cast(), self.bytes) };
    }
}
