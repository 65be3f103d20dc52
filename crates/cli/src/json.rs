//! Values to JSON and back, without loss: what one command prints another can read.
//!
//! What JSON has a notation for is itself: null, true, numbers (a float has a point or an exponent, an
//! integer has neither and any size), text, lists, and maps whose keys are text. Every other value is an
//! object with one key that names its kind after a `$`; bytes are hexadecimal:
//!
//! | kind | JSON |
//! |---|---|
//! | a float that is no number | `{"$float": "nan"}`, `"inf"`, `"-inf"` |
//! | bytes, decimal, timestamp, uuid | `{"$bytes": "00ff"}`, `{"$decimal": "1.50"}`, … |
//! | tuple | `{"$tuple": [1, 2]}` |
//! | a map with other keys | `{"$map": [[key, value], …]}` |
//! | array | `{"$array": {"dtype": "f8", "shape": [2], "data": "…"}}` |
//! | entry | `{"$entry": {"name": "Job", "bases": [], "fields": {"id": 7}}}` |
//! | opaque | `{"$opaque": {"codec": "pickle", "type": "Job", "data": "…"}}` |

use serde_json::{Map as Object, Number, Value as Json, json};
use tupelo::{Array, DType, Decimal, Entry, Map, Opaque, Timestamp, Tuple, Value};

/// What stands for a tuple on a line of its own: an object with a list of its fields as `tuple`, or with the
/// parts of an entry as `entry`.
pub(crate) fn line(tuple: &Tuple) -> Json {
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
pub(crate) fn tuple(line: &str) -> Result<Tuple, String> {
    let parsed = serde_json::from_str(line).map_err(|error| format!("this is no JSON: {error}"))?;
    let list = match parsed {
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

fn from_value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::BigInt(value) => number(&value.to_string()),
        Value::Float(value) => Number::from_f64(*value)
            .map_or_else(|| tagged("float", json!(value.to_string().to_lowercase())), Json::Number),
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

/// An object, if every key is text that can not be taken for a tag.
fn from_map(map: &Map) -> Json {
    let pairs = map.pairs().iter();
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
    let pairs = object.into_iter().map(|(key, value)| Ok((Value::Str(key), to_value(value)?)));
    map(pairs.collect::<Result<Vec<_>, String>>()?)
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
        return digits.parse().map(Value::Float).map_err(|error| format!("{digits}: {error}"));
    }
    Value::parse_int(digits).map_err(|error| error.to_string())
}

fn to_tagged(kind: &str, inside: Json) -> Result<Value, String> {
    let text = inside.as_str();
    let made = match (kind, text) {
        ("float", Some(text @ ("nan" | "inf" | "-inf"))) => text.parse().ok().map(Value::Float),
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
    let pairs: Vec<[Json; 2]> = serde_json::from_value(pairs)
        .map_err(|error| format!("a $map is a list of pairs: {error}"))?;
    let pairs = pairs.into_iter().map(|[key, value]| Ok((to_value(key)?, to_value(value)?)));
    map(pairs.collect::<Result<Vec<_>, String>>()?)
}

fn map(pairs: Vec<(Value, Value)>) -> Result<Value, String> {
    Map::new(pairs).map(Value::Map).map_err(|error| error.to_string())
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
        let values = vec![
            Value::Null,
            Value::Bool(true),
            Value::Int(i64::MIN),
            Value::parse_int("123456789012345678901234567890").unwrap(),
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
    fn a_line_that_is_no_tuple_says_what_one_is() {
        assert_eq!(
            tuple("{}"),
            Err("a tuple is a list, as in [\"job\", 7], or {\"tuple\": [\"job\", 7]}".to_owned())
        );
        assert!(tuple("[1").unwrap_err().starts_with("this is no JSON: "));
        assert_eq!(
            tuple(r#"[1, {"$bytes": "0"}]"#),
            Err("field 1: no value has the form {\"$bytes\": …} with this inside".to_owned())
        );
    }
}
