//! From CEL's tree to ours: only what this subset has, every part checked.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use super::kinds::{Kinds, Place};
use super::syntax::{self, Parsed};
use super::{CONDITION_DEPTH_MAX, TUPLE, words};
use crate::image::ARITY_MAX;
use crate::{ParseError, Value};

/// A part of a condition.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A literal.
    Constant(Value),
    /// A name, by its number.
    Name(usize),
    /// `list[index]`, `map[key]`.
    Index(Box<[Node; 2]>),
    /// `map.key`, `entry.field`.
    Select(Box<Node>, Value),
    /// `[a, b]`.
    List(Vec<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    /// `condition ? this : that`.
    If(Box<[Node; 3]>),
    Equal(Box<[Node; 2]>),
    Order(Order, Box<[Node; 2]>),
    In(Box<[Node; 2]>),
    Arithmetic(Arithmetic, Box<[Node; 2]>),
    Size(Box<Node>),
    Text(TextTest, Box<[Node; 2]>),
    Int(Box<Node>),
    Double(Box<Node>),
}

/// A comparison of what has an order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A look into text.
#[derive(Clone, Copy, Debug)]
pub(super) enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
}

const FUNCTIONS: &str = "one of the functions size, startsWith, endsWith, contains, int, double";

/// Why a name is none of a plain tuple.
pub(super) const ONLY_ENTRIES: &str = "only entries have fields with names";

/// What became of a text.
pub(super) struct Compilation {
    /// The checked tree.
    pub(super) root: Node,
    /// The names in it, with their places.
    pub(super) names: Vec<(Box<str>, usize)>,
    /// Why it has no answer for a plain tuple, of which `f` is all fields. Of an entry `f` may be a field.
    pub(super) misuse: Option<ParseError>,
}

/// Compiles the parsed form of `text`.
pub(super) fn compile(text: &str, parsed: &Parsed) -> Result<Compilation, ParseError> {
    let mut compiler = Compiler { text, parsed, names: Vec::new(), depth: 0, misuse: None };
    let root = compiler.required(&parsed.expression, &Place::TRUTH)?;
    Ok(Compilation { root, names: compiler.names, misuse: compiler.misuse })
}

struct Compiler<'a> {
    text: &'a str,
    parsed: &'a Parsed,
    names: Vec<(Box<str>, usize)>,
    depth: usize,
    misuse: Option<ParseError>,
}

impl Compiler<'_> {
    fn error(&self, part: &IdedExpr, expected: impl Into<String>) -> ParseError {
        ParseError::new(self.text, self.place(part), expected)
    }

    /// Where a part begins: an operator at its sign, a call at its bracket.
    fn place(&self, part: &IdedExpr) -> usize {
        let at = self.parsed.place(self.text, part.id);
        let is_negative = match &part.expr {
            Expr::Literal(LiteralValue::Int(value)) => *value.inner() < 0,
            Expr::Literal(LiteralValue::Double(value)) => value.inner().is_sign_negative(),
            _ => false,
        };
        // The parser has the place of the digits.
        let sign = self.text[..at].trim_end().strip_suffix('-').map(str::len);
        sign.filter(|_| is_negative).unwrap_or(at)
    }

    /// A part that has to be able to stand in `place`.
    fn required(&mut self, part: &IdedExpr, place: &Place) -> Result<Node, ParseError> {
        let node = self.node(part)?;
        self.checked(part, node, place)
    }

    /// `node`, which was made of `part`, if it can stand in `place`.
    fn checked(&mut self, part: &IdedExpr, node: Node, place: &Place) -> Result<Node, ParseError> {
        let instead_of = |what: &str| {
            let expected = format!("{} instead of {what}{}", place.expected, place.example);
            self.error(part, expected).with_hint(place.hint)
        };
        if !node.kinds().meets(place.kinds) {
            return Err(instead_of(node.described()));
        }
        if self.is_tuple(&node) && !Kinds::LIST.meets(place.kinds) {
            let why = instead_of("the tuple").with_hint("its first field is f[0]");
            self.misuse.get_or_insert(why);
        }
        Ok(node)
    }

    /// Whether it is the tuple, should the condition be asked about one.
    fn is_tuple(&self, node: &Node) -> bool {
        matches!(node, Node::Name(number) if is_tuple(&self.names[*number].0))
    }

    fn node(&mut self, part: &IdedExpr) -> Result<Node, ParseError> {
        if self.depth == CONDITION_DEPTH_MAX {
            return Err(
                self.error(part, format!("at most {CONDITION_DEPTH_MAX} levels of nesting"))
            );
        }
        self.depth += 1;
        let node = self.node_inside(part);
        self.depth -= 1;
        node
    }

    fn node_inside(&mut self, part: &IdedExpr) -> Result<Node, ParseError> {
        match &part.expr {
            Expr::Literal(literal) => self.literal(part, literal).map(Node::Constant),
            Expr::Ident(name) => Ok(Node::Name(self.name(part, name))),
            Expr::List(list) => {
                let items = list.elements.iter().map(|item| self.node(item));
                items.collect::<Result<_, _>>().map(Node::List)
            }
            Expr::Select(select) if select.test => {
                Err(self.error(part, "`\"key\" in map` instead of has()"))
            }
            Expr::Select(select) => {
                // Of the tuple itself this is a better reason than that it is no map.
                let expected = "an index, as in f[0]";
                if matches!(&select.operand.expr, Expr::Ident(name) if is_tuple(name)) {
                    let why = self.error(part, expected).with_hint(ONLY_ENTRIES);
                    self.misuse.get_or_insert(why);
                }
                let inner = self.required(&select.operand, &Place::KEYED)?;
                Ok(Node::Select(Box::new(inner), Value::Str(select.field.clone())))
            }
            Expr::Call(call) => self.call(part, call),
            Expr::Comprehension(_) => Err(self.error(
                part,
                "no loop: all(), exists(), map() and filter() are not there; `x in list` is",
            )),
            Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => {
                Err(self.error(part, "a literal number, text, bytes, true, false, null or [list]"))
            }
        }
    }

    fn literal(&self, part: &IdedExpr, literal: &LiteralValue) -> Result<Value, ParseError> {
        Ok(match literal {
            LiteralValue::Null => Value::Null,
            LiteralValue::Boolean(value) => Value::Bool(*value.inner()),
            LiteralValue::Int(value) => Value::Int(*value.inner()),
            LiteralValue::Double(value) => Value::Float(*value.inner()),
            LiteralValue::String(text) => Value::Str(text.inner().to_owned()),
            LiteralValue::Bytes(bytes) => Value::Bytes(bytes.inner().to_vec()),
            LiteralValue::UInt(_) => return Err(self.error(part, "an int, without the u")),
        })
    }

    /// The number of a name.
    fn name(&mut self, part: &IdedExpr, name: &str) -> usize {
        if let Some(known) = self.names.iter().position(|(known, _)| **known == *name) {
            return known;
        }
        self.names.push((name.into(), self.place(part)));
        self.names.len() - 1
    }

    fn call(&mut self, part: &IdedExpr, call: &CallExpr) -> Result<Node, ParseError> {
        let name = call.func_name.as_str();
        if let Some(target) = &call.target {
            let [argument] = &call.args[..] else {
                return Err(self.no_method(part, name));
            };
            let test = match name {
                "startsWith" => TextTest::StartsWith,
                "endsWith" => TextTest::EndsWith,
                "contains" => TextTest::Contains,
                _ => return Err(self.no_method(part, name)),
            };
            let target = self.required(target, &Place::TEXT)?;
            let both = Box::new([target, self.required(argument, &Place::TEXT)?]);
            return Ok(Node::Text(test, both));
        }
        match &call.args[..] {
            [one] => self.unary(part, name, one),
            [left, right] => self.binary(part, name, [left, right]),
            [condition, this, that] if name == operators::CONDITIONAL => {
                let all =
                    [self.required(condition, &Place::TRUTH)?, self.node(this)?, self.node(that)?];
                Ok(Node::If(Box::new(all)))
            }
            _ => Err(self.error(part, FUNCTIONS)),
        }
    }

    fn no_method(&self, part: &IdedExpr, name: &str) -> ParseError {
        if matches!(name, "size" | "int" | "double") {
            return self.error(part, format!("{name}(value) instead of value.{name}()"));
        }
        if name == "len" {
            return self.error(part, "size(value) instead of value.len()");
        }
        let is_known = matches!(name, "startsWith" | "endsWith" | "contains");
        let expected = if is_known {
            format!("one argument, as in text.{name}(\"x\")")
        } else {
            FUNCTIONS.into()
        };
        self.error(part, expected)
    }

    fn unary(&mut self, part: &IdedExpr, name: &str, one: &IdedExpr) -> Result<Node, ParseError> {
        Ok(match name {
            operators::LOGICAL_NOT => Node::Not(Box::new(self.required(one, &Place::TRUTH)?)),
            operators::NEGATE => Node::Negate(Box::new(self.required(one, &Place::NUMBER)?)),
            "size" => Node::Size(Box::new(self.required(one, &Place::SIZED)?)),
            "int" => Node::Int(Box::new(self.required(one, &Place::NUMBER)?)),
            "double" => Node::Double(Box::new(self.required(one, &Place::NUMBER)?)),
            _ => return Err(self.no_function(part, name)),
        })
    }

    fn no_function(&self, part: &IdedExpr, name: &str) -> ParseError {
        match name {
            "startsWith" | "endsWith" | "contains" => {
                self.error(part, format!("text.{name}(\"x\") instead of {name}(text, \"x\")"))
            }
            "len" => self.error(part, "size(value) instead of len(value)"),
            _ => self.error(part, words::in_cel(name).unwrap_or(FUNCTIONS)),
        }
    }

    fn binary(
        &mut self,
        part: &IdedExpr,
        name: &str,
        [left, right]: [&IdedExpr; 2],
    ) -> Result<Node, ParseError> {
        let order = match name {
            operators::LESS => Some(Order::Less),
            operators::LESS_EQUALS => Some(Order::LessOrEqual),
            operators::GREATER => Some(Order::Greater),
            operators::GREATER_EQUALS => Some(Order::GreaterOrEqual),
            _ => None,
        };
        if let Some(order) = order {
            return self.order(part, order, [left, right]);
        }
        let arithmetic = match name {
            operators::ADD => Some(Arithmetic::Add),
            operators::SUBSTRACT => Some(Arithmetic::Subtract),
            operators::MULTIPLY => Some(Arithmetic::Multiply),
            operators::DIVIDE => Some(Arithmetic::Divide),
            operators::MODULO => Some(Arithmetic::Remainder),
            _ => None,
        };
        if let Some(arithmetic) = arithmetic {
            return self.arithmetic(arithmetic, [left, right]);
        }
        Ok(match name {
            operators::LOGICAL_AND => Node::And(self.truths(left, right)?),
            operators::LOGICAL_OR => Node::Or(self.truths(left, right)?),
            operators::EQUALS => Node::Equal(self.both(left, right)?),
            operators::NOT_EQUALS => Node::Not(Box::new(Node::Equal(self.both(left, right)?))),
            operators::IN => {
                let item = self.node(left)?;
                Node::In(Box::new([item, self.required(right, &Place::CONTAINER)?]))
            }
            operators::INDEX => self.index(left, right)?,
            _ => return Err(self.no_function(part, name)),
        })
    }

    fn both(&mut self, left: &IdedExpr, right: &IdedExpr) -> Result<Box<[Node; 2]>, ParseError> {
        Ok(Box::new([self.node(left)?, self.node(right)?]))
    }

    fn truths(&mut self, left: &IdedExpr, right: &IdedExpr) -> Result<Box<[Node; 2]>, ParseError> {
        let left = self.required(left, &Place::TRUTH)?;
        Ok(Box::new([left, self.required(right, &Place::TRUTH)?]))
    }

    fn order(
        &mut self,
        part: &IdedExpr,
        order: Order,
        [left, right]: [&IdedExpr; 2],
    ) -> Result<Node, ParseError> {
        let left_node = self.node(left)?;
        if matches!(left_node, Node::Order(..)) {
            let hint = syntax::without_chain(self.text, self.place(left), self.place(part));
            return Err(self.error(part, "&& between two comparisons").with_hint(hint));
        }
        let left_node = self.checked(left, left_node, &Place::ORDERED)?;
        let right_node = self.required(right, &Place::ORDERED)?;
        if !left_node.kinds().has_order_with(right_node.kinds()) {
            let (with, found) = (left_node.described(), right_node.described());
            let expected = format!("what has an order with {with} instead of {found}");
            return Err(self.error(right, expected));
        }
        Ok(Node::Order(order, Box::new([left_node, right_node])))
    }

    fn arithmetic(
        &mut self,
        operator: Arithmetic,
        [left, right]: [&IdedExpr; 2],
    ) -> Result<Node, ParseError> {
        let is_remainder = matches!(operator, Arithmetic::Remainder);
        let place = if is_remainder { Place::INT } else { Place::NUMBER };
        let parts = [self.required(left, &place)?, self.required(right, &place)?];
        if matches!(operator, Arithmetic::Divide | Arithmetic::Remainder)
            && parts[1].constant_int() == Some(0)
        {
            return Err(self.error(right, "a divisor other than 0"));
        }
        let common = parts[0].kinds().and(parts[1].kinds());
        if !common.meets(Kinds::NUMBER) {
            let is_int = parts[0].kinds().meets(Kinds::INT);
            let expected = if is_int { "ints on both sides" } else { "floats on both sides" };
            let hint = "double(x) makes a float of an int, int(x) an int of a float";
            return Err(self.error(right, expected).with_hint(hint));
        }
        Ok(Node::Arithmetic(operator, Box::new(parts)))
    }

    fn index(&mut self, left: &IdedExpr, right: &IdedExpr) -> Result<Node, ParseError> {
        let list = self.required(left, &Place::CONTAINER)?;
        let key = self.node(right)?;
        if self.is_tuple(&list) {
            if let Some((expected, hint)) = no_index_of_tuple(&key) {
                self.misuse.get_or_insert(self.error(right, expected).with_hint(hint));
            }
        } else if list.kinds() == Kinds::LIST
            && let Some(expected) = no_index(&key)
        {
            return Err(self.error(right, expected));
        }
        Ok(Node::Index(Box::new([list, key])))
    }
}

/// What would be an index of a list, if this is none.
fn no_index(key: &Node) -> Option<String> {
    match key.constant_int() {
        Some(number) if number < 0 => Some(format!("an index from 0 instead of {number}")),
        _ if key.kinds().meets(Kinds::INT) => None,
        _ => Some(format!("an index, such as 0, instead of {}", key.described())),
    }
}

/// What would be an index of the tuple, if this is none, and what to write.
fn no_index_of_tuple(key: &Node) -> Option<(String, String)> {
    let is_within = |number: i64| {
        usize::try_from(number.unsigned_abs()).is_ok_and(|from_end| from_end <= ARITY_MAX)
    };
    if let Some(expected) = no_index(key) {
        let hint = match (key, key.constant_int()) {
            (Node::Constant(Value::Str(text)), _) => match text.parse::<usize>() {
                Ok(number) if number < ARITY_MAX => format!("write f[{number}]"),
                _ => ONLY_ENTRIES.to_owned(),
            },
            (_, Some(-1)) => "the last field is f[size(f) - 1]".to_owned(),
            (_, Some(number)) if is_within(number) => {
                format!("from the end it is f[size(f) - {}]", number.unsigned_abs())
            }
            _ => String::new(),
        };
        return Some((expected, hint));
    }
    let number = usize::try_from(key.constant_int()?).unwrap_or(usize::MAX);
    (number >= ARITY_MAX).then(|| {
        let expected = format!("an index of at most {}", ARITY_MAX - 1);
        (expected, format!("a tuple has at most {ARITY_MAX} fields"))
    })
}

/// Whether a name is that of the tuple.
pub(super) fn is_tuple(name: &str) -> bool {
    name == TUPLE
}
