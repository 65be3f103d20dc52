//! The spaces of a server, and who is told when a call that waits in one has something.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::pending;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tupelo::{
    ConnectOptions, Durability, Error, Notifier, ShapeNames, Space, Stat, Subscription, Waiter,
    shell_word,
};
use tupelo_protocol::{Fault, Opened};

use crate::audit::Act;
use crate::descriptor::watched;
use crate::meters::{Field, Meter, Meters};
use crate::queues::{LOOKED_AT_MAX, Queue, Queues};
use crate::session::Session;
use crate::{Engine, ServedSpace};

/// The figures of a space.
pub(crate) struct Figures {
    pub(crate) name: String,
    pub(crate) stat: Stat,
    /// What has gone through this server, by first field.
    pub(crate) meters: Vec<(Field, Meter)>,
    /// What lies in it.
    pub(crate) queues: Vec<Queue>,
}

impl Figures {
    /// What is in a space, and when it was there. This thread may take its time.
    fn seen(space: &Space) -> Result<(Stat, Vec<ShapeNames>, Instant), Error> {
        Ok((space.stat()?, space.names_of_all(LOOKED_AT_MAX)?, Instant::now()))
    }
}

/// Spaces that a server has at most (rule B2).
const SPACES_MAX: usize = 4096;
/// What to do where clients make none.
const MAKES_NONE: &str = "start it without --no-create, or name the space with --space";

/// The spaces of a server, by name.
pub(crate) struct Spaces {
    engine: Engine,
    creates: bool,
    by_name: RefCell<HashMap<String, Rc<Hosted>>>,
    /// The URLs of those that are kept in files, by their names.
    files: HashMap<String, String>,
    /// Held by who looks at the figures of all spaces.
    looking: Arc<Mutex<()>>,
}

impl Spaces {
    pub(crate) fn new(engine: Engine, creates: bool, spaces: &[ServedSpace]) -> Self {
        let file = |space: &ServedSpace| Some((space.name.clone(), space.file_url.clone()?));
        let files = spaces.iter().filter_map(file).collect();
        Self { engine, creates, by_name: RefCell::default(), files, looking: Arc::default() }
    }

    /// Makes a space, or finds it where spaces outlive a server.
    pub(crate) fn make(&self, name: &str) -> Result<(), Error> {
        self.connect(name, &ConnectOptions::default()).map(drop)
    }

    /// Waits until all that has changed by now in the spaces of files is on disk, or in the one of this name. A client is told of
    /// nothing before (rule C4).
    pub(crate) async fn settled(&self, only: Option<&str>) -> Result<(), Fault> {
        let is_asked = |name: &&String| only.is_none_or(|only| only == *name);
        for name in self.files.keys().filter(is_asked) {
            let hosted = self.by_name.borrow().get(name).cloned();
            if let Some(hosted) = hosted {
                hosted.settled().await?;
            }
        }
        Ok(())
    }

    /// The space that a client opens, and what that has made.
    pub(crate) fn open(&self, opened: &Opened<'_>) -> Result<(Rc<Hosted>, Option<Act>), Error> {
        let Opened { name, create, fresh, size_bytes, tuples_max, when_full } = *opened;
        let known = self.by_name.borrow().get(name).cloned();
        // One that was removed beside the server, or in it, is nobody's any more: the name may be another's by now.
        if let Some(known) = known.filter(|known| !fresh && !known.was_removed()) {
            return Ok((known, None));
        }
        if fresh && !self.creates {
            return Err(Error::AccessDenied {
                problem: format!("this server makes no spaces, and {name} was to begin anew"),
                hint: Some(MAKES_NONE.to_owned()),
            });
        }
        if fresh {
            self.require_no_file(name, "was to begin anew")?;
        }
        let defaults = ConnectOptions::default();
        let create = create && self.creates;
        let size_bytes = size_bytes.unwrap_or(defaults.size_bytes);
        let options =
            ConnectOptions { create: false, fresh, size_bytes, tuples_max, when_full, ..defaults };
        if fresh {
            let options = ConnectOptions { create, ..options };
            return Ok((self.connect(name, &options)?, Some(Act::MadeAnew)));
        }
        match self.connect(name, &options) {
            Err(Error::SpaceNotFound { .. }) if create => {
                let options = ConnectOptions { create, ..options };
                Ok((self.connect(name, &options)?, Some(Act::Made)))
            }
            found => Ok((found?, None)),
        }
    }

    /// Removes a space. Clients that have it open are told at their next call, and within 100 ms where they wait.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Error> {
        if !self.creates {
            return Err(Error::AccessDenied {
                problem: format!(
                    "this server makes and removes no spaces, and {name} was to be removed"
                ),
                hint: Some(MAKES_NONE.to_owned()),
            });
        }
        require_name(name)?;
        self.require_no_file(name, "was to be removed")?;
        self.by_name.borrow_mut().remove(name);
        tupelo::remove(&self.url(name))
    }

    /// The names of the spaces that are open, in their order.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.by_name.borrow().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// The names of all spaces that a client could open, in their order: also of those that are there and not open.
    pub(crate) fn all_names(&self) -> Result<Vec<String>, Error> {
        let mut names = self.names();
        if self.engine == Engine::Shm {
            names.extend(tupelo::spaces()?.into_iter().map(|space| space.name));
            names.sort_unstable();
            names.dedup();
        }
        Ok(names)
    }

    /// The figures of a space that is open; `None` if it is not, or was removed.
    pub(crate) fn stat(&self, name: &str) -> Result<Option<Stat>, Error> {
        let hosted = self.by_name.borrow().get(name).cloned();
        match hosted.map(|hosted| hosted.space.stat()) {
            None | Some(Err(Error::SpaceRemoved { .. })) => Ok(None),
            Some(stat) => stat.map(Some),
        }
    }

    /// The figures of those of the open spaces that `is_told` says, in the order of their names; not of those that were removed
    /// beside the server. A thread of its own looks at them, one such look at a time: a space may have many tuples.
    pub(crate) async fn figures(
        &self,
        is_told: impl Fn(&str) -> bool,
    ) -> Result<Vec<Figures>, Fault> {
        let alone = Arc::clone(&self.looking).lock_owned().await;
        let known = |name: String| Some((self.by_name.borrow().get(&name).cloned()?, name));
        let told = self.names().into_iter().filter(|name| is_told(name)).filter_map(known);
        let told: Vec<_> = told.collect();
        let spaces: Vec<_> = told.iter().map(|(hosted, _)| hosted.space.clone()).collect();
        // The thread goes on if the client hangs up, so the next look waits for that.
        let look = move || {
            let _alone = alone;
            spaces.iter().map(Figures::seen).collect::<Vec<_>>()
        };
        let seen = tokio::task::spawn_blocking(look).await;
        let seen = seen.map_err(|error| Error::System { problem: error.to_string() })?;
        let figures = told.into_iter().zip(seen).filter_map(|((hosted, name), seen)| match seen {
            Err(Error::SpaceRemoved { .. }) => None,
            Err(error) => Some(Err(error.into())),
            Ok((stat, names, at)) => {
                let (meters, queues) = (hosted.meters.all(), hosted.queues.see(names, at));
                Some(Ok(Figures { name, stat, meters, queues }))
            }
        });
        figures.collect()
    }

    fn url(&self, name: &str) -> String {
        self.files
            .get(name)
            .cloned()
            .unwrap_or_else(|| format!("{}://{name}", self.engine.scheme()))
    }

    /// Refuses to throw a file away: it was named by whoever started the server.
    fn require_no_file(&self, name: &str, what: &str) -> Result<(), Error> {
        let Some(url) = self.files.get(name) else { return Ok(()) };
        Err(Error::AccessDenied {
            problem: format!("the server keeps {name} in a file, and it {what}"),
            hint: Some(format!(
                "take what is in it; or on the server's machine, while no server has it: tupelo rm {}",
                shell_word(url)
            )),
        })
    }

    fn connect(&self, name: &str, options: &ConnectOptions) -> Result<Rc<Hosted>, Error> {
        require_name(name)?;
        let mut by_name = self.by_name.borrow_mut();
        if by_name.len() >= SPACES_MAX && !by_name.contains_key(name) {
            return Err(Error::LimitExceeded {
                problem: format!("no more than {SPACES_MAX} spaces in one server"),
                hint: "use fewer spaces, or another server".into(),
            });
        }
        // The answers wait for the disk, and not the thread that serves all clients.
        let options = ConnectOptions { keeps_keys: true, ..options.clone() };
        let space = Space::connect(&self.url(name), &options)?.with_sync(Durability::None);
        let is_shared = self.engine == Engine::Shm || self.files.contains_key(name);
        let hosted = Hosted::new(name, space.at_once(), is_shared)?;
        by_name.insert(name.to_owned(), Rc::clone(&hosted));
        Ok(hosted)
    }
}

/// Refuses a name that would be more than a name in a URL.
fn require_name(name: &str) -> Result<(), Error> {
    if name.contains('?') {
        let problem = format!("{name:?} is no name of a space: it has a question mark");
        return Err(Error::Misuse { problem, hint: None });
    }
    Ok(())
}

/// A space of a server.
pub(crate) struct Hosted {
    pub(crate) name: String,
    /// A handle whose puts do not wait: nothing waits in this thread.
    pub(crate) space: Space,
    notifier: Notifier,
    /// Whether other processes use the space too, which may be killed before they could tell somebody.
    is_shared: bool,
    /// The calls that wait: by their number at the notifier, the session and the request.
    waits: RefCell<HashMap<u32, (Weak<Session>, u64)>>,
    /// Told of the first call that waits, and of the end.
    changed: Rc<Notify>,
    /// What has gone through.
    pub(crate) meters: Meters,
    /// What lies in it, as far as somebody has looked.
    queues: Queues,
}

impl Hosted {
    fn new(name: &str, space: Space, is_shared: bool) -> Result<Rc<Self>, Error> {
        let notifier = space.notifier()?;
        let system = |error: std::io::Error| Error::System { problem: error.to_string() };
        let rung = notifier.as_fd().try_clone_to_owned().map_err(system)?;
        let rung = watched(rung).map_err(system)?;
        let changed = Rc::new(Notify::new());
        let hosted = Rc::new(Self {
            name: name.to_owned(),
            space,
            notifier,
            is_shared,
            waits: RefCell::default(),
            changed: Rc::clone(&changed),
            meters: Meters::default(),
            queues: Queues::default(),
        });
        tokio::task::spawn_local(ring(Rc::downgrade(&hosted), rung, changed));
        Ok(hosted)
    }

    /// Has the session told when `waiter` has something. Returns the number by which that ends.
    pub(crate) fn register(&self, waiter: &Waiter, session: Weak<Session>, id: u64) -> u32 {
        let number = self.notifier.add(waiter);
        self.note(number, session, id);
        number
    }

    /// As [`Hosted::register`], of a subscription.
    pub(crate) fn register_subscription(
        &self,
        subscription: &Subscription,
        session: Weak<Session>,
        id: u64,
    ) -> Result<u32, Error> {
        let number = self.notifier.add_subscription(subscription)?;
        self.note(number, session, id);
        Ok(number)
    }

    fn note(&self, number: u32, session: Weak<Session>, id: u64) {
        let mut waits = self.waits.borrow_mut();
        waits.insert(number, (session, id));
        if waits.len() == 1 {
            self.changed.notify_one();
        }
    }

    /// Tells nobody any more. To be called before the waiter itself goes.
    pub(crate) fn unregister(&self, number: u32) {
        self.notifier.remove(number);
        self.waits.borrow_mut().remove(&number);
    }

    /// Serves the calls that may have something; perhaps in vain.
    fn serve(&self, numbers: Vec<u32>) {
        for number in numbers {
            let wait = self.waits.borrow().get(&number).cloned();
            if let Some((session, id)) = wait
                && let Some(session) = session.upgrade()
            {
                session.serve_wait(id);
            }
        }
    }

    /// Waits until all that has changed by now is on disk.
    pub(crate) async fn settled(&self) -> Result<(), Fault> {
        if !self.is_behind() {
            return Ok(());
        }
        let space = self.space.clone();
        // In a thread of its own, since this one waits for nothing. One sync is for all who wait at that moment.
        let flushed = tokio::task::spawn_blocking(move || space.flush()).await;
        let flushed =
            flushed.unwrap_or_else(|error| Err(Error::System { problem: error.to_string() }));
        flushed
            .map_err(|error| Error::DurabilityUnknown { problem: error.message() })
            .map_err(Fault::from)
    }

    /// Whether something has changed that is not on disk yet.
    pub(crate) fn is_behind(&self) -> bool {
        self.space.journal_stat().is_some_and(|stat| stat.drained < stat.appended)
    }

    /// Whether the space was removed, or another has its name.
    fn was_removed(&self) -> bool {
        matches!(self.notifier.look(), Err(Error::SpaceRemoved { .. }))
    }

    /// Does what blocked callers do now and then.
    fn look(&self) {
        let Ok(mut concerned) = self.notifier.look() else {
            // All that wait are refused, and told why: nothing comes any more in a space that was removed or is damaged.
            let all = self.waits.borrow().keys().copied().collect();
            return self.serve(all);
        };
        if !self.is_shared {
            // Watches are told of in vain for the sake of processes that are killed.
            let waits = self.waits.borrow();
            concerned.retain(|number| {
                let wait =
                    waits.get(number).and_then(|(session, id)| Some((session.upgrade()?, *id)));
                wait.is_some_and(|(session, id)| !session.watches(id))
            });
        }
        self.serve(concerned);
    }

    /// Lets puts wake nobody until [`Hosted::serve_now`], as this thread makes them. To wake it by its own socket took seven
    /// system calls, half of the time of a put that somebody waits for.
    pub(crate) fn attend(&self) {
        if !self.waits.borrow().is_empty() {
            self.notifier.attend();
        }
    }

    /// Serves calls that wait for what has just been put, without the way through the event loop. Returns whether there may have
    /// been some.
    pub(crate) fn serve_now(&self) -> bool {
        if self.waits.borrow().is_empty() {
            return false;
        }
        let numbers = self.notifier.collect();
        let has_some = !numbers.is_empty();
        self.serve(numbers);
        if !self.notifier.listen() {
            // Of something else, which is served by way of the event loop.
            self.changed.notify_one();
        }
        has_some
    }

    /// Serves what the notifier tells of. Returns how long to sleep until the next look if it tells of nothing more;
    /// `None` while nobody waits.
    fn grant(&self) -> Option<Duration> {
        loop {
            self.serve(self.notifier.drain());
            if self.waits.borrow().is_empty() {
                self.notifier.rest();
                return None;
            }
            if self.notifier.listen() {
                return Some(self.notifier.next_look());
            }
        }
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

/// Serves the calls that wait in a space, for as long as that is used.
async fn ring(hosted: Weak<Hosted>, rung: AsyncFd<OwnedFd>, changed: Rc<Notify>) {
    loop {
        let Some(next_look) = hosted.upgrade().map(|hosted| hosted.grant()) else { return };
        let look = async {
            match next_look {
                Some(slice) => tokio::time::sleep(slice).await,
                None => pending().await,
            }
        };
        tokio::select! {
            ready = rung.readable() => {
                let Ok(mut ready) = ready else { return };
                ready.clear_ready();
            }
            () = changed.notified() => {}
            () = look => {
                if let Some(hosted) = hosted.upgrade() {
                    hosted.look();
                }
            }
        }
    }
}
