//! Tuples to JSON and back, without loss: what one command prints another can read, and what HTTP says.
//!
//! A value with a notation in JSON is written as itself. That covers null, true, numbers, text, lists, and maps whose
//! keys are text. A float has a point or an exponent; an integer has neither and any size. Every other value is an
//! object with one key that names its kind after a `$`. Bytes are hexadecimal:
//!
//! | kind | JSON |
//! |---|---|
//! | a float that is no number | `{"$float": "nan"}`, `"inf"`, `"-inf"`; `"nan:7ff8000000000001"` of other bits |
//! | bytes, decimal, timestamp, uuid | `{"$bytes": "00ff"}`, `{"$decimal": "1.50"}`, … |
//! | tuple | `{"$tuple": [1, 2]}` |
//! | a map with other keys | `{"$map": [[key, value], …]}` |
//! | array | `{"$array": {"dtype": "f8", "shape": [2], "data": "…"}}` |
//! | entry | `{"$entry": {"name": "Job", "bases": [], "fields": {"id": 7}}}` |
//! | opaque | `{"$opaque": {"codec": "pickle", "type": "Job", "data": "…"}}` |
//!
//! A [template](template()) is a list of such values, and of patterns as `{"$formal": ":int"}`.
#![forbid(unsafe_code)]

mod template;

use serde_json::{Deserializer, Map as Object, Number, Value as Json, json};
use tupelo_tuple::{Array, DEPTH_MAX, DType, Decimal, Entry, Map, Opaque, Timestamp, Tuple, Value};

pub use template::template;

/// Most brackets that are open at once in what stands for a tuple. A map or an entry takes three for each of its
/// levels, the line itself as many.
const BRACKETS_MAX: usize = 3 * (DEPTH_MAX + 1);
/// The name of the float that is no number.
const NAN: &str = "nan";

/// A tuple on a line of its own: an object with a list of its fields as `tuple`, or with the parts of an entry as
/// `entry`.
pub fn line(tuple: &Tuple) -> Json {
    let Some(class) = tuple.class() else { return json!({ "tuple": from_values(tuple) }) };
    let fields = class.fields().zip(tuple.iter());
    json!({ "entry": entry_parts(class.name(), &class.bases().collect::<Vec<_>>(), fields) })
}

fn from_values(values: &[Value]) -> Json {
    values.iter().map(from_value).collect()
}

fn entry_parts<'a>(
    name: &str,
    bases: &[impl AsRef<str>],
    fields: impl Iterator<Item = (&'a str, &'a Value)>,
) -> Json {
    let bases: Vec<&str> = bases.iter().map(AsRef::as_ref).collect();
    let fields = fields.map(|(name, value)| (name.to_owned(), from_value(value)));
    json!({ "name": name, "bases": bases, "fields": fields.collect::<Object<String, Json>>() })
}

/// The tuple that a line spells: a list of its fields, or what [`line()`] makes, as `read --json` prints it.
///
/// # Errors
///
/// The mistake in the line, in words.
pub fn tuple(line: &str) -> Result<Tuple, String> {
    to_tuple(parse(line)?)
}

/// The tuple that JSON spells: a list of its fields, or what [`line()`] makes.
///
/// # Errors
///
/// The mistake, in words.
pub fn to_tuple(json: Json) -> Result<Tuple, String> {
    let list = match json {
        Json::Object(object) if object.contains_key("entry") && object.contains_key("tuple") => {
            return Err("a line is either a \"tuple\" or an \"entry\", not both".to_owned());
        }
        Json::Object(mut object) if object.contains_key("entry") => {
            let entry = to_entry(object.remove("entry").unwrap_or_default())?;
            return Tuple::from_entry(entry).map_err(|error| error.to_string());
        }
        Json::Object(mut object) => object.remove("tuple").unwrap_or_default(),
        other => other,
    };
    let Json::Array(fields) = list else {
        return Err(
            "a tuple is a list, as in [\"job\", 7], or {\"tuple\": [\"job\", 7]}".to_owned()
        );
    };
    let field = |(index, field)| to_value(field).map_err(|why| format!("field {index}: {why}"));
    fields.into_iter().enumerate().map(field).collect()
}

/// One value of JSON. The parser has a limit of its own for brackets, which is below the number that [`line()`] may
/// print. The limit is turned off for texts within that number.
///
/// # Errors
///
/// The mistake in the text, in words.
pub fn parse(line: &str) -> Result<Json, String> {
    if brackets(line) > BRACKETS_MAX {
        return Err(format!("values are nested over {DEPTH_MAX} levels"));
    }
    let mut parser = Deserializer::from_str(line);
    parser.disable_recursion_limit();
    let mut values = parser.into_iter();
    match (values.next(), values.next()) {
        (Some(Ok(value)), None) => Ok(value),
        (Some(Err(error)), _) | (_, Some(Err(error))) => Err(format!("this is no JSON: {error}")),
        _ => Err("this is no JSON: a line has one value".to_owned()),
    }
}

/// The greatest number of brackets that are open at one place, outside of texts.
fn brackets(line: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in line.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

fn from_value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::BigInt(value) => number(&value.to_string()),
        Value::Float(value) => from_float(*value),
        Value::Str(text) => json!(text),
        Value::List(items) => from_values(items),
        Value::Map(map) => from_map(map),
        Value::Bytes(bytes) => tagged("bytes", hexadecimal(bytes)),
        Value::Decimal(decimal) => tagged("decimal", json!(decimal.to_string())),
        Value::Timestamp(moment) => tagged("timestamp", json!(moment.to_string())),
        Value::Uuid(uuid) => tagged("uuid", hexadecimal(uuid)),
        Value::Tuple(items) => tagged("tuple", from_values(items)),
        Value::Array(array) => tagged(
            "array",
            json!({
                "dtype": array.dtype().name(),
                "shape": array.shape(),
                "data": hexadecimal(array.data()),
            }),
        ),
        Value::Entry(entry) => {
            let fields = entry.fields().iter().map(|(name, value)| (name.as_str(), value));
            tagged("entry", entry_parts(entry.name(), entry.bases(), fields))
        }
        Value::Opaque(object) => tagged(
            "opaque",
            json!({
                "codec": object.codec,
                "type": object.type_name,
                "data": hexadecimal(&object.bytes),
            }),
        ),
        newer => tagged(newer.kind().name(), Json::Null),
    }
}

fn from_float(value: f64) -> Json {
    let name = || match value {
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        _ if value.to_bits() == f64::NAN.to_bits() => NAN.to_owned(),
        // A NaN may carry bits of its own, and keeps them (V4).
        _ => format!("{NAN}:{:016x}", value.to_bits()),
    };
    Number::from_f64(value).map_or_else(|| tagged("float", json!(name())), Json::Number)
}

/// A float that is no number, by its name.
fn to_float(name: &str) -> Option<f64> {
    match name {
        NAN => Some(f64::NAN),
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        _ => {
            let digits = name.strip_prefix(NAN)?.strip_prefix(':')?;
            let bits = from_hexadecimal(digits)?.try_into().ok().map(u64::from_be_bytes)?;
            Some(f64::from_bits(bits)).filter(|value| value.is_nan())
        }
    }
}

/// An object, if every key is text that cannot be taken for a tag.
fn from_map(map: &Map) -> Json {
    let pairs = map.ordered();
    let as_object: Option<Object<String, Json>> = pairs
        .clone()
        .map(|(key, value)| match key {
            Value::Str(key) if !key.starts_with('$') => Some((key.clone(), from_value(value))),
            _ => None,
        })
        .collect();
    as_object.map_or_else(
        || {
            tagged(
                "map",
                pairs.map(|(key, value)| json!([from_value(key), from_value(value)])).collect(),
            )
        },
        Json::Object,
    )
}

fn to_value(json: Json) -> Result<Value, String> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(value),
        Json::String(text) => Value::Str(text),
        Json::Number(number) => to_number(&number.to_string())?,
        Json::Array(items) => Value::List(to_values(items)?),
        Json::Object(object) => to_object(object)?,
    })
}

fn to_object(object: Object<String, Json>) -> Result<Value, String> {
    if let Some(kind) = tag(&object) {
        let kind = kind.to_owned();
        let inside = object.into_values().next().unwrap_or_default();
        return to_tagged(&kind, inside);
    }
    // An object has no order; here it stands sorted by its keys.
    let pairs = object.into_iter().map(|(key, value)| Ok((Value::Str(key), to_value(value)?)));
    map(Map::new(pairs.collect::<Result<Vec<_>, String>>()?))
}

fn to_values(items: Vec<Json>) -> Result<Vec<Value>, String> {
    items.into_iter().map(to_value).collect()
}

/// The kind that an object's only key names.
fn tag(object: &Object<String, Json>) -> Option<&str> {
    let only = object.keys().next().filter(|_| object.len() == 1)?;
    only.strip_prefix('$')
}

fn to_number(digits: &str) -> Result<Value, String> {
    if digits.contains(['.', 'e', 'E']) {
        let value: f64 = digits.parse().map_err(|error| format!("{digits}: {error}"))?;
        if value.is_infinite() {
            return Err(format!(
                "{digits} is more than a float holds; {{\"$float\": \"inf\"}} is infinity"
            ));
        }
        return Ok(Value::Float(value));
    }
    Value::parse_int(digits).map_err(|error| error.to_string())
}

fn to_tagged(kind: &str, inside: Json) -> Result<Value, String> {
    let text = inside.as_str();
    let made = match (kind, text) {
        ("float", Some(name)) => to_float(name).map(Value::Float),
        ("bytes", Some(text)) => from_hexadecimal(text).map(Value::Bytes),
        ("uuid", Some(text)) => from_hexadecimal(&text.replace('-', ""))
            .and_then(|id| id.try_into().ok())
            .map(Value::Uuid),
        ("decimal", Some(text)) => {
            Some(Value::Decimal(Decimal::parse(text).map_err(|error| error.to_string())?))
        }
        ("timestamp", Some(text)) => {
            Some(Value::Timestamp(Timestamp::parse(text).map_err(|error| error.to_string())?))
        }
        ("tuple", None) => match inside {
            Json::Array(items) => Some(Value::Tuple(to_values(items)?)),
            _ => None,
        },
        ("map", None) => Some(to_map(inside)?),
        ("array", None) => Some(to_array(&inside)?),
        ("entry", None) => Some(Value::Entry(to_entry(inside)?)),
        ("opaque", None) => to_opaque(&inside).map(Value::Opaque),
        _ => None,
    };
    made.ok_or_else(|| format!("no value has the form {{\"${kind}\": …}} with this inside"))
}

fn to_map(pairs: Json) -> Result<Value, String> {
    let expected = || "a $map is a list of pairs, as in [[1, \"one\"]]".to_owned();
    let Json::Array(pairs) = pairs else { return Err(expected()) };
    let pair = |pair| {
        let Json::Array(pair) = pair else { return Err(expected()) };
        let [key, value] = <[Json; 2]>::try_from(pair).map_err(|_| expected())?;
        Ok((to_value(key)?, to_value(value)?))
    };
    map(Map::in_order(pairs.into_iter().map(pair).collect::<Result<Vec<_>, String>>()?))
}

fn map(made: Result<Map, impl std::fmt::Display>) -> Result<Value, String> {
    made.map(Value::Map).map_err(|error| error.to_string())
}

fn to_array(array: &Json) -> Result<Value, String> {
    let parts = || {
        let dtype = DType::from_name(array["dtype"].as_str()?)?;
        let shape: Vec<u64> =
            array["shape"].as_array()?.iter().map(Json::as_u64).collect::<Option<_>>()?;
        Some((dtype, shape, from_hexadecimal(array["data"].as_str()?)?))
    };
    let (dtype, shape, data) =
        parts().ok_or("an $array has a dtype, a shape, and data in hexadecimal")?;
    Array::new(dtype, &shape, data).map(Value::Array).map_err(|error| error.to_string())
}

fn to_entry(entry: Json) -> Result<Entry, String> {
    let expected = "an entry has a name, bases and fields";
    let Json::Object(mut entry) = entry else {
        return Err(expected.to_owned());
    };
    let (Some(Json::String(name)), Some(Json::Object(fields))) =
        (entry.remove("name"), entry.remove("fields"))
    else {
        return Err(expected.to_owned());
    };
    let bases = entry.remove("bases").unwrap_or_else(|| json!([]));
    let bases: Vec<String> = serde_json::from_value(bases).map_err(|error| error.to_string())?;
    let fields = fields.into_iter().map(|(name, value)| Ok((name, to_value(value)?)));
    let fields = fields.collect::<Result<Vec<_>, String>>()?;
    Entry::new(name, bases, fields).map_err(|error| error.to_string())
}

fn to_opaque(object: &Json) -> Option<Opaque> {
    let text = |name: &str| object[name].as_str().map(str::to_owned);
    let bytes = from_hexadecimal(&text("data")?)?;
    Some(Opaque { codec: text("codec")?, type_name: text("type")?, bytes })
}

fn tagged(kind: &str, inside: Json) -> Json {
    Json::Object(Object::from_iter([(format!("${kind}"), inside)]))
}

/// A number with exactly these digits.
fn number(digits: &str) -> Json {
    digits.parse().map_or(Json::Null, Json::Number)
}

fn hexadecimal(bytes: &[u8]) -> Json {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    Json::String(digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect())
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    digits.chunks(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind, and the values that JSON would bend: V3 for the command line.
    #[test]
    fn what_is_printed_reads_back_the_same() {
        let large = Value::parse_int(&"1234567890".repeat(10)).unwrap();
        let values = vec![
            Value::Null,
            Value::Bool(true),
            Value::Int(i64::MIN),
            large.clone(),
            Value::Float(3.0),
            Value::Float(-0.0),
            Value::Float(1e300),
            Value::Float(f64::NEG_INFINITY),
            Value::from("é\"\n\u{0}"),
            Value::Bytes(vec![0, 255]),
            Value::Decimal(Decimal::parse("1.50").unwrap()),
            Value::Timestamp(Timestamp::parse("2031-05-04T16:20:00.5Z").unwrap()),
            Value::Uuid([7; 16]),
            Value::Array(Array::new(DType::from_name("f8").unwrap(), &[2], vec![1; 16]).unwrap()),
            Value::List(vec![Value::Int(1), Value::List(vec![])]),
            Value::Tuple(vec![Value::Int(1)]),
            Value::Map(Map::new([(Value::from("a"), Value::Int(1))]).unwrap()),
            Value::Map(Map::new([(Value::from("$a"), Value::Int(1))]).unwrap()),
            Value::Map(Map::new([(Value::Int(1), Value::Null)]).unwrap()),
            Value::Map(Map::new([(large.clone(), Value::List(vec![large]))]).unwrap()),
            Value::Entry(
                Entry::new("Job", ["Work".to_owned()], [("id".to_owned(), Value::Int(7))]).unwrap(),
            ),
            Value::Opaque(Opaque {
                codec: "pickle".into(),
                type_name: "set".into(),
                bytes: vec![1],
            }),
        ];
        for value in values {
            let line = line(&Tuple::from(vec![value.clone()])).to_string();
            let back = tuple(&line).unwrap();
            assert_eq!(back.into_fields(), [value], "{line}");
        }
    }

    #[test]
    fn an_entry_on_its_own_is_told_from_one_in_a_tuple_m7() {
        let job: Tuple = "Job(Base){id: 7}".parse().unwrap();
        let text = line(&job).to_string();
        assert_eq!(text, r#"{"entry":{"bases":["Base"],"fields":{"id":7},"name":"Job"}}"#);
        assert_eq!(tuple(&text).unwrap(), job);
        let holding: Tuple = "(Job(Base){id: 7})".parse().unwrap();
        assert_eq!(tuple(&line(&holding).to_string()).unwrap(), holding);
    }

    #[test]
    fn nan_is_told_from_text() {
        let line = from_values(&[Value::Float(f64::NAN)]).to_string();
        assert_eq!(line, r#"[{"$float":"nan"}]"#);
        assert!(matches!(tuple(&line).unwrap()[0], Value::Float(nan) if nan.is_nan()));
    }

    #[test]
    fn nan_keeps_its_bits_v4() {
        for bits in [0x7ff8_0000_0000_0001, 0xfff8_0000_0000_0000, 0x7ff0_0000_0000_0001_u64] {
            let line = from_values(&[Value::Float(f64::from_bits(bits))]).to_string();
            assert_eq!(line, format!(r#"[{{"$float":"nan:{bits:016x}"}}]"#));
            let Value::Float(back) = tuple(&line).unwrap()[0] else { panic!("{line}") };
            assert_eq!(back.to_bits(), bits, "{line}");
        }
        for wrong in ["nan:", "nan:7ff8", "nan:3ff0000000000000", "NaN", "infinity", "1.5"] {
            assert!(tuple(&format!(r#"[{{"$float": "{wrong}"}}]"#)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_number_that_no_float_holds_is_refused() {
        for digits in ["1e400", "-1e400", "1.5e999"] {
            let why = tuple(&format!("[{digits}]")).unwrap_err();
            assert!(why.contains("is more than a float holds"), "{why}");
        }
    }

    #[test]
    fn the_deepest_tuple_reads_back_the_same() {
        let within_map = |value| Value::Map(Map::new([(Value::Null, value)]).unwrap());
        let within_list = |value| Value::List(vec![value]);
        let within_tuple = |value| Value::Tuple(vec![value]);
        let within_entry =
            |value| Value::Entry(Entry::new("E", [], [("x".to_owned(), value)]).unwrap());
        let holders: [&dyn Fn(Value) -> Value; 4] =
            [&within_map, &within_list, &within_tuple, &within_entry];
        for within in holders {
            let mut deepest = Tuple::from(vec![Value::Int(1)]);
            loop {
                let deeper = Tuple::from(vec![within(deepest[0].clone())]);
                if deeper.encode().is_err() {
                    break;
                }
                deepest = deeper;
            }
            let line = line(&deepest).to_string();
            assert_eq!(tuple(&line).as_ref(), Ok(&deepest));
        }
    }

    #[test]
    fn what_is_nested_deeper_than_any_tuple_is_refused_before_it_is_read() {
        let line = "[".repeat(1_000_000);
        assert_eq!(tuple(&line), Err("values are nested over 128 levels".to_owned()));
        let texts = format!("[{:?}, \"\\\"[\"]", "[".repeat(1000));
        assert_eq!(tuple(&texts).map(|tuple| tuple.len()), Ok(2));
    }

    #[test]
    fn a_map_that_is_no_list_of_pairs_is_refused() {
        for pairs in ["1", "[1]", "[[1]]", "[[1, 2, 3]]", "{}"] {
            let why = tuple(&format!(r#"[{{"$map": {pairs}}}]"#)).unwrap_err();
            assert!(why.contains("a $map is a list of pairs"), "{pairs}: {why}");
        }
    }

    #[test]
    fn a_line_that_is_no_tuple_says_what_one_is() {
        assert_eq!(
            tuple("{}"),
            Err("a tuple is a list, as in [\"job\", 7], or {\"tuple\": [\"job\", 7]}".to_owned())
        );
        let both = r#"{"tuple": [1], "entry": {"name": "Job", "bases": [], "fields": {}}}"#;
        assert!(tuple(both).unwrap_err().ends_with("not both"));
        assert!(tuple("[1").unwrap_err().starts_with("this is no JSON: "));
        assert_eq!(
            tuple(r#"[1, {"$bytes": "0"}]"#),
            Err("field 1: no value has the form {\"$bytes\": …} with this inside".to_owned())
        );
    }
}
