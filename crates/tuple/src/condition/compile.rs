//! From CEL's tree to ours: only what this subset has, every part checked.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use super::syntax::Parsed;
use super::{CONDITION_DEPTH_MAX, TUPLE};
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

/// The checked tree, and the names in it with their places.
pub(super) type Compilation = (Node, Vec<(Box<str>, usize)>);

/// Compiles what was parsed of `text`.
pub(super) fn compile(text: &str, parsed: &Parsed) -> Result<Compilation, ParseError> {
    let mut compiler = Compiler { text, parsed, names: Vec::new(), depth: 0 };
    let root = compiler.truth(&parsed.expression)?;
    Ok((root, compiler.names))
}

struct Compiler<'a> {
    text: &'a str,
    parsed: &'a Parsed,
    names: Vec<(Box<str>, usize)>,
    depth: usize,
}

impl Compiler<'_> {
    fn error(&self, part: &IdedExpr, expected: impl Into<String>) -> ParseError {
        ParseError::new(self.text, self.parsed.place(self.text, part.id), expected)
    }

    /// A part that has to be true or false.
    fn truth(&mut self, part: &IdedExpr) -> Result<Node, ParseError> {
        let node = self.node(part)?;
        match node.never_true() {
            None => Ok(node),
            Some(what) => Err(self.error(
                part,
                format!("what is true or false instead of {what}, such as a comparison with =="),
            )),
        }
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
                let inner = self.node(&select.operand)?;
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
        self.names.push((name.into(), self.parsed.place(self.text, part.id)));
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
            let both = Box::new([self.node(target)?, self.node(argument)?]);
            return Ok(Node::Text(test, both));
        }
        match &call.args[..] {
            [one] => self.unary(part, name, one),
            [left, right] => self.binary(part, name, [left, right]),
            [condition, this, that] if name == operators::CONDITIONAL => {
                let all = [self.truth(condition)?, self.node(this)?, self.node(that)?];
                Ok(Node::If(Box::new(all)))
            }
            _ => Err(self.error(part, FUNCTIONS)),
        }
    }

    fn no_method(&self, part: &IdedExpr, name: &str) -> ParseError {
        if matches!(name, "size" | "int" | "double") {
            return self.error(part, format!("{name}(value) instead of value.{name}()"));
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
            operators::LOGICAL_NOT => Node::Not(Box::new(self.truth(one)?)),
            operators::NEGATE => Node::Negate(Box::new(self.number(one)?)),
            "size" => Node::Size(Box::new(self.node(one)?)),
            "int" => Node::Int(Box::new(self.number(one)?)),
            "double" => Node::Double(Box::new(self.number(one)?)),
            _ => return Err(self.no_function(part, name)),
        })
    }

    fn no_function(&self, part: &IdedExpr, name: &str) -> ParseError {
        match name {
            "startsWith" | "endsWith" | "contains" => {
                self.error(part, format!("text.{name}(\"x\") instead of {name}(text, \"x\")"))
            }
            _ => self.error(part, FUNCTIONS),
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
            return Ok(Node::Order(order, self.both(left, right)?));
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
            let both = Box::new([self.number(left)?, self.number(right)?]);
            return Ok(Node::Arithmetic(arithmetic, both));
        }
        Ok(match name {
            operators::LOGICAL_AND => Node::And(Box::new([self.truth(left)?, self.truth(right)?])),
            operators::LOGICAL_OR => Node::Or(Box::new([self.truth(left)?, self.truth(right)?])),
            operators::EQUALS => Node::Equal(self.both(left, right)?),
            operators::NOT_EQUALS => Node::Not(Box::new(Node::Equal(self.both(left, right)?))),
            operators::IN => Node::In(self.both(left, right)?),
            operators::INDEX => Node::Index(self.both(left, right)?),
            _ => return Err(self.no_function(part, name)),
        })
    }

    fn both(&mut self, left: &IdedExpr, right: &IdedExpr) -> Result<Box<[Node; 2]>, ParseError> {
        Ok(Box::new([self.node(left)?, self.node(right)?]))
    }

    /// A part that has to be a number.
    fn number(&mut self, part: &IdedExpr) -> Result<Node, ParseError> {
        let node = self.node(part)?;
        match node.never_number() {
            None => Ok(node),
            Some(what) => Err(self.error(part, format!("a number instead of {what}"))),
        }
    }
}

impl Node {
    /// What it is, if it can not be true or false, whatever the tuple is.
    fn never_true(&self) -> Option<&'static str> {
        match self {
            Self::Constant(Value::Bool(_)) => None,
            Self::Constant(value) => Some(value.kind().name()),
            Self::List(_) => Some("a list"),
            Self::Negate(_)
            | Self::Arithmetic(..)
            | Self::Size(_)
            | Self::Int(_)
            | Self::Double(_) => Some("a number"),
            Self::If(parts) => parts[1].never_true().and(parts[2].never_true()),
            _ => None,
        }
    }

    /// What it is, if it can not be a number, whatever the tuple is.
    fn never_number(&self) -> Option<&'static str> {
        match self {
            Self::Constant(Value::Int(_) | Value::Float(_)) => None,
            Self::Constant(value) => Some(value.kind().name()),
            Self::List(_) => Some("a list"),
            Self::Not(_)
            | Self::And(_)
            | Self::Or(_)
            | Self::Equal(_)
            | Self::Order(..)
            | Self::In(_)
            | Self::Text(..) => Some("what is true or false"),
            Self::If(parts) => parts[1].never_number().and(parts[2].never_number()),
            _ => None,
        }
    }
}

/// Whether a name is that of the tuple.
pub(super) fn is_tuple(name: &str) -> bool {
    name == TUPLE
}
