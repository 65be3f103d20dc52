//! What the tables of a space are called. A file has those of each of its spaces.

/// The number of the space that a URL without `space=` means. Its tables have no number in their names.
pub(crate) const DEFAULT_NUMBER: i64 = 1;

/// The names of the tables of one space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// The number of the space in its file.
    pub(crate) number: i64,
    /// What is in it.
    pub(crate) tuple: String,
    /// Who is told of what over a restart.
    pub(crate) subscription: String,
    /// The events that wait.
    pub(crate) event: String,
    /// What keyed requests were answered.
    pub(crate) answered: String,
}

impl Names {
    /// Those of the space with this number.
    pub(crate) fn of(number: i64) -> Self {
        let name = |table: &str| match number {
            DEFAULT_NUMBER => table.to_owned(),
            _ => format!("{table}_{number}"),
        };
        Self {
            number,
            tuple: name("tuple"),
            subscription: name("subscription"),
            event: name("event"),
            answered: name("answered"),
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> [&str; 4] {
        [&self.tuple, &self.subscription, &self.event, &self.answered]
    }

    /// What makes all of them.
    pub(crate) fn schema(&self) -> String {
        let subscriptions = [self.subscriptions_schema(), self.sessions_schema()].concat();
        [self.tuples_schema(), subscriptions, self.answers_schema()].concat()
    }

    fn tuples_schema(&self) -> String {
        format!(
            "
CREATE TABLE {} (
    id INTEGER PRIMARY KEY,
    image BLOB NOT NULL,
    hidden_until_ns INTEGER,
    ends_at_ns INTEGER,
    failed INTEGER NOT NULL,
    is_dead INTEGER NOT NULL,
    reasons BLOB NOT NULL
) STRICT;
",
            self.tuple
        )
    }

    /// Subscriptions that outlive their subscribers: what they ask for, the number of the newest event, and the number of the last
    /// event that the subscriber is done with. The events behind that, as far as they are kept.
    pub(crate) fn subscriptions_schema(&self) -> String {
        format!(
            "
CREATE TABLE {} (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    template BLOB NOT NULL,
    keep INTEGER NOT NULL,
    last INTEGER NOT NULL,
    told INTEGER NOT NULL
) STRICT;
CREATE TABLE {} (
    subscription INTEGER NOT NULL,
    number INTEGER NOT NULL,
    image BLOB NOT NULL,
    PRIMARY KEY (subscription, number)
) STRICT, WITHOUT ROWID;
",
            self.subscription, self.event
        )
    }

    /// Which subscriber has the subscription: a random number, which the next one replaces.
    pub(crate) fn sessions_schema(&self) -> String {
        format!(
            "ALTER TABLE {} ADD COLUMN session INTEGER NOT NULL DEFAULT 0;\n",
            self.subscription
        )
    }

    /// What keyed requests were answered: a row for each turn of the journal that brought some, by the number of its last one.
    pub(crate) fn answers_schema(&self) -> String {
        format!(
            "
CREATE TABLE {} (
    last INTEGER PRIMARY KEY,
    entries BLOB NOT NULL
) STRICT;
",
            self.answered
        )
    }
}
