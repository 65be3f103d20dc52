//! Hostile bytes and texts: a seeded mutator over a small corpus drives the functions of `fuzz`. None panics, and none makes
//! them allocate more than its own length calls for (B2).
//!
//! Runs a fixed number of cases, or for `TUPELO_TORTURE_SECONDS`. Every run prints its seed; with
//! `TUPELO_SEED` set to it, the same cases come in the same order.

use std::time::Instant;

use fastrand::Rng as Random;
use tupelo_crashtest::{Allocations, CountingAllocator, seed, torture_time};
use tupelo_tuple::{Template, Tuple, fuzz};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// What may be allocated at once for a case, whatever lengths it claims to have.
const ALLOCATED_BYTES: u64 = 32 << 10;
/// The same for each byte of an encoding.
const ALLOCATED_PER_BYTE: u64 = 1_000;
/// The same for each byte of a text. A part of it may be a condition, whose parser has 4 000 bytes for each bracket that is open; of
/// those it allows no more than `CONDITION_DEPTH_MAX`.
const ALLOCATED_PER_BYTE_OF_TEXT: u64 = 4_500;
/// Cases without a time limit: about a second.
const CASES: u64 = 100_000;
/// As many of conditions, whose parser is slower.
const CONDITION_CASES: u64 = 10_000;

/// Texts from which the corpus is made; the encodings of what they say are in it too.
const TUPLES: &[&str] = &[
    r#"("job", 7, 3.5, true, null, b"\x00\xff", -129, 70000, 5000000000, -40000, -3000000000)"#,
    "(18446744073709551615, -9223372036854775809, 340282366920938463463374607431768211456)",
    r#"(decimal("-12.50"), decimal("5E-20"), uuid("0f8fad5b-d9cb-469f-a165-70867728950e"))"#,
    r#"(timestamp("1970-01-01T00:00:01Z"), timestamp("2031-05-04T16:20:00.5Z"), timestamp("0001-01-01T00:00:00Z"))"#,
    r#"(list(1, list(2.0, tuple(-0.0, float("nan"))), map("a": 1, "b": list(), 0.0: null)))"#,
    r#"(array("i2", list(2, 1), b"\x01\x00\x02\x00"), array("f8", list(0), b""))"#,
    r#"(Job(Base){id: 7, name: "x"}, opaque("pickle", "t", b"\x80"))"#,
    "()",
];

const TEMPLATES: &[&str] = &[
    r#"("job", :int, _, ...)"#,
    r#"(3..9, 3<..9.5, "a"..<"b", > 3, <= decimal("1.0"), != "x")"#,
    r#"(in {1, "two", list(3)}, glob:"img/[a-z]*.?", prefix:b"\x00", !(:int|:str))"#,
    r#"(> 3 & < 9 & != 5 | "x" | :null) | ("stop") | ()"#,
    r#"("job", :int) where "f[1] % 2 == 0" | Job{id: > 3} where "size(name) > 2""#,
];

/// Words of a command line: what is text in some of them begins, or nearly, like something else.
const WORDS: &[&str] = &[
    " hello ",
    "7 apples",
    "3..x",
    "prefix:b'\\x00'",
    "glob:b\" ?",
    "Job{name: glob:a*}",
    "(a|b)",
];

const CONDITIONS: &[&str] = &[
    "f[1] % 2 == 0",
    r#"f[0] == "job" && (f[1] > 3 || !(f[2] in [1, 2.5, null, b"\x00", true])) ? size(f) < 4 : false"#,
    r#"f[3].key != f[4]["key"] || f[0].startsWith('a') && f[0].contains("é") || -int(f[2]) / 2 <= 0x1f"#,
];

fn corpus() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut encodings = Vec::new();
    for text in TUPLES {
        let tuple: Tuple = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        encodings.push(tuple.encode().unwrap());
        encodings.extend(tuple.iter().map(|field| field.encode().unwrap()));
    }
    for text in TEMPLATES {
        let template: Template = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        encodings.push(template.encode().unwrap());
    }
    let texts = TUPLES.iter().chain(TEMPLATES).map(|text| text.as_bytes().to_vec()).collect();
    (encodings, texts)
}

/// One to four small changes, the kinds that decoders trip over.
fn mutate(case: &mut Vec<u8>, corpus: &[Vec<u8>], tokens: &[&[u8]], random: &mut Random) {
    for _ in 0..=random.u32(..4) {
        let at = random.usize(..=case.len());
        let length = random.usize(..=case.len() - at).min(16);
        match random.u32(..7) {
            0 if at < case.len() => case[at] ^= 1 << random.u32(..8),
            1 if at < case.len() => case[at] = random.u8(..),
            2 => drop(case.drain(at..at + length)),
            3 => {
                let again = case[at..at + length].to_vec();
                case.splice(at..at, again);
            }
            4 => case.truncate(at),
            5 => {
                let token = tokens[random.usize(..tokens.len())];
                case.splice(at..at, token.iter().copied());
            }
            _ => {
                let other = &corpus[random.usize(..corpus.len())];
                let from = random.usize(..other.len().max(1));
                case.splice(at..at + length, other[from..].iter().copied());
            }
        }
    }
}

/// Runs `check` on mutants of `corpus` until the cases or the time are used up.
fn torture(
    corpus: &[Vec<u8>],
    tokens: &[&[u8]],
    (cases, allocated_per_byte): (u64, u64),
    check: fn(&[u8]),
) {
    let time = torture_time();
    let begin = Instant::now();
    let mut random = Random::with_seed(seed());
    for number in 0.. {
        let over = match time {
            Some(time) => begin.elapsed() >= time,
            None => number >= cases,
        };
        if over {
            eprintln!("{number} cases");
            return;
        }
        let mut case = corpus[random.usize(..corpus.len())].clone();
        mutate(&mut case, corpus, tokens, &mut random);
        let bytes_max = ALLOCATED_BYTES + allocated_per_byte * case.len() as u64;
        let ((), mut allocations) = Allocations::of(|| check(&case));
        if allocations.bytes_peak > bytes_max {
            // The table of all classes may have grown for the one that it names. It does so once.
            ((), allocations) = Allocations::of(|| check(&case));
        }
        assert!(allocations.bytes_peak <= bytes_max, "{allocations:?} for {case:?}");
    }
}

#[test]
fn no_bytes_make_the_decoder_panic_and_what_it_accepts_is_canonical_v4_c5() {
    let (encodings, _) = corpus();
    for encoding in &encodings {
        fuzz::decode(encoding);
    }
    let tokens: &[&[u8]] = &[
        &[0xc6, 0xff, 0xff, 0xff, 0xff],
        &[0xdd, 0xff, 0xff, 0xff, 0xff],
        &[0xdf, 0x7f, 0xff, 0xff, 0xff],
        &[0xc7, 12, 0xff],
        &[0xc8, 0x01, 0x00, 23],
        &[0xd4, 5, 0x90],
        &[0x91; 200],
        &[0xcb, 0x80, 0, 0, 0, 0, 0, 0, 0],
        &[0xca, 0, 0, 0, 0],
    ];
    torture(&encodings, tokens, (CASES, ALLOCATED_PER_BYTE), fuzz::decode);
}

#[test]
fn no_text_makes_the_parser_panic_and_what_it_accepts_survives_printing() {
    let (_, mut texts) = corpus();
    texts.extend(WORDS.iter().map(|word| word.as_bytes().to_vec()));
    for text in &texts {
        fuzz::parse(text);
    }
    let tokens: &[&[u8]] = &[
        b"(",
        b")",
        b"|",
        b" & ",
        b"!",
        b"...",
        b"..<",
        b"<..",
        b"\"",
        b"\\u{",
        b"list(",
        b"map(",
        b":int",
        b"in {",
        b"glob:",
        b"1e",
        b"-",
        b"decimal(\"",
        "\u{2028}é".as_bytes(),
        b"!!!!!!!!!!!!",
        b"((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
    ];
    torture(&texts, tokens, (CASES, ALLOCATED_PER_BYTE_OF_TEXT), fuzz::parse);
}

#[test]
fn no_text_makes_a_condition_panic_and_what_is_accepted_survives_its_template_m9() {
    let texts: Vec<Vec<u8>> = CONDITIONS.iter().map(|text| text.as_bytes().to_vec()).collect();
    for text in &texts {
        fuzz::condition(text, text);
    }
    let tokens: &[&[u8]] = &[
        b"f[",
        b"]",
        b"((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
        b"!!!!!!!!!!!!",
        b"------------",
        b"a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:a?b:",
        b"1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+",
        b".a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a",
        b" in ",
        b"f.exists(x, ",
        b"has(",
        b"9223372036854775808",
        b"1e999",
        b"7u",
        b"\"",
        b"\'\'\'",
        b"\\u",
        b"`",
        b"//",
        "\u{2028}é".as_bytes(),
    ];
    let limits = (CONDITION_CASES, ALLOCATED_PER_BYTE_OF_TEXT);
    torture(&texts, tokens, limits, |case| fuzz::condition(case, case));
}
