//! Extents, slabs and blocks: each has exactly one owner.

use std::collections::{BTreeMap, BTreeSet};

use tupelo_shm::Word;

use crate::base::error::Error;
use crate::base::layout::head;
use crate::inspect::check::{Check, contradiction, require};
use crate::store::arena::{self, BLOCKS, BUMP, FREE_LIST, KIND, LIVE, NEXT, OWNER, PREVIOUS, RUN};
use crate::store::partition::{self, Partition};
use crate::store::sizes::{CLASSES_COUNT, class_granules};
use crate::store::{blocks, record, slab};

/// Every block that is in use, and who was found to use it.
pub(super) struct Blocks {
    /// By first granule.
    used: BTreeMap<u32, Block>,
    extents_owned: u64,
    extents_free: u64,
}

/// Slabs and shared extents with room, by their numbers: whose, and for blocks of which class.
type WithRoom = BTreeMap<u32, (u32, usize)>;

struct Block {
    scope: u32,
    bytes: usize,
    /// What refers to it; nothing yet.
    user: Option<String>,
}

impl Blocks {
    /// Walks all extents: what is free, what is in use, and that the lists agree with it.
    pub(super) fn survey(check: &Check<'_, '_>) -> Result<Self, Error> {
        let mut blocks = Self { used: BTreeMap::new(), extents_owned: 0, extents_free: 0 };
        let line = arena::line(check.view);
        let committed = line.load(arena::COMMITTED);
        let extents_max = check.engine.layout.extents_all;
        require(committed <= extents_max, || {
            format!("{committed} extents are committed where {extents_max} may be")
        })?;
        let mut with_room = WithRoom::new();
        let mut index = 0;
        while index < committed {
            index += blocks.survey_extent(check, index, committed, &mut with_room)?;
        }
        let counted = line.load(arena::FREE);
        require(blocks.extents_free == u64::from(counted), || {
            format!("{counted} extents are counted as free, {} are", blocks.extents_free)
        })?;
        for class in 0..CLASSES_COUNT {
            for scope in check.partitions() {
                let list = blocks::list_of(Partition::of_scope(check.view, scope), class);
                check_list(check, list, scope, class, &mut with_room)?;
            }
            let shared = slab::shared_list(check.view, class);
            check_list(check, shared, head::ARENA_SCOPE, class, &mut with_room)?;
        }
        match with_room.first_key_value() {
            None => Ok(blocks),
            Some((number, _)) => {
                Err(contradiction(format!("slab {number:#x} has room but is in no list")))
            }
        }
    }

    /// Surveys what begins at extent `index`. Returns how many extents it has.
    fn survey_extent(
        &mut self,
        check: &Check<'_, '_>,
        index: u32,
        committed: u32,
        with_room: &mut WithRoom,
    ) -> Result<u32, Error> {
        let layout = &check.engine.layout;
        if arena::is_free(check.view, layout, index) {
            self.extents_free += 1;
            let hint = arena::line(check.view).load(arena::HINT);
            require(index / 32 >= hint, || {
                format!("extent {index} is free, below the hint of word {hint}")
            })?;
            return Ok(1);
        }
        let entry = arena::entry(check.view, layout, index);
        let (kind, owner) = (entry.load(KIND), entry.load(OWNER));
        let first = layout.extent_granule(index);
        let extents = if kind & 0xff == BLOCKS { 1 } else { entry.load(LIVE) };
        match kind & 0xff {
            BLOCKS => self.survey_slabs(check, index, with_room)?,
            RUN => {
                let is_owner = check.is_partition(owner) || owner == head::ARENA_SCOPE;
                require(is_owner && extents > 0, || {
                    format!("a run of {extents} extents at {index} belongs to scope {owner}")
                })?;
                let end = index.saturating_add(extents);
                let taken = |inside| !arena::is_free(check.view, layout, inside);
                require(end <= committed && (index..end).all(taken), || {
                    format!("the run of {extents} extents at {index} is partly free")
                })?;
                let bytes = extents as usize * crate::base::layout::EXTENT_BYTES;
                self.used.insert(first, Block { scope: owner, bytes, user: None });
            }
            _ => {
                return Err(contradiction(format!(
                    "extent {index} is taken, but its kind is {kind:#x}"
                )));
            }
        }
        self.extents_owned += u64::from(extents);
        Ok(extents)
    }

    /// Surveys the slabs of extent `index`: it is one, or partitions share it.
    fn survey_slabs(
        &mut self,
        check: &Check<'_, '_>,
        index: u32,
        with_room: &mut WithRoom,
    ) -> Result<(), Error> {
        let layout = &check.engine.layout;
        let extent = arena::entry(check.view, layout, index);
        let class = (extent.load(KIND) >> 8) as usize;
        let slabs: Vec<u32> = slab::all_in(layout, index, extent).collect();
        require(class < CLASSES_COUNT && !slabs.is_empty(), || {
            format!(
                "extent {index} is of class {class}, and {} slabs of it are in use",
                slabs.len()
            )
        })?;
        if slab::has_small_left(extent) {
            with_room.insert(index, (head::ARENA_SCOPE, class));
        }
        for number in slabs {
            let entry = slab::entry(check.view, layout, number);
            let owner = entry.load(OWNER);
            require(check.is_partition(owner), || {
                format!("slab {number:#x} of class {class} belongs to scope {owner}")
            })?;
            self.survey_blocks(check, number, class, owner)?;
            if slab::has_room(entry, number, class) {
                with_room.insert(number, (owner, class));
            }
        }
        Ok(())
    }

    /// Every block of a slab that was ever used is in its free list or in use.
    fn survey_blocks(
        &mut self,
        check: &Check<'_, '_>,
        number: u32,
        class: usize,
        scope: u32,
    ) -> Result<(), Error> {
        let layout = &check.engine.layout;
        let entry = slab::entry(check.view, layout, number);
        let (size, first) = (class_granules(class), slab::first_block(layout, number));
        let bump = entry.load(BUMP);
        require(bump <= slab::capacity(number, class), || {
            format!("slab {number:#x} has {bump} blocks of {size} granules")
        })?;
        let mut free = BTreeSet::new();
        let mut at = entry.load(FREE_LIST);
        while at != 0 {
            let inside =
                at >= first && (at - first).is_multiple_of(size) && (at - first) / size < bump;
            require(inside && free.insert(at), || {
                format!("the free list of slab {number:#x} comes to granule {at}, or again")
            })?;
            let header = blocks::start(check.view, at);
            let state = header.load(record::STATE);
            require(state == record::FREE, || {
                format!("block {at} is in the free list of slab {number:#x} in state {state}")
            })?;
            at = header.load(record::FREE_NEXT);
        }
        let live = entry.load(LIVE);
        require(live as usize + free.len() == bump as usize, || {
            format!(
                "slab {number:#x} counts {live} blocks in use and {} free of {bump}",
                free.len()
            )
        })?;
        let bytes = size as usize * tupelo_shm::GRANULE;
        let all = (0..bump).map(|block| first + block * size);
        for block in all.filter(|block| !free.contains(block)) {
            self.used.insert(block, Block { scope, bytes, user: None });
        }
        Ok(())
    }

    /// Notes that `user` uses the block at `granule`, of `scope`, for at least `bytes` bytes. Every block is
    /// used once.
    pub(super) fn claim(
        &mut self,
        granule: u32,
        scope: u32,
        bytes: usize,
        user: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        let Some(block) = self.used.get_mut(&granule) else {
            return Err(contradiction(format!(
                "{} is at {granule}, which is no block in use",
                user()
            )));
        };
        if let Some(other) = &block.user {
            return Err(contradiction(format!("block {granule} is {} and {other}", user())));
        }
        if block.scope != scope || block.bytes < bytes {
            let (of, has) = (block.scope, block.bytes);
            return Err(contradiction(format!(
                "{} takes {bytes} bytes of scope {scope} in block {granule}, which has {has} of {of}",
                user()
            )));
        }
        block.user = Some(user());
        Ok(())
    }

    /// Nothing is in use that nobody refers to.
    pub(super) fn check_all_claimed(&self) -> Result<(), Error> {
        match self.used.iter().find(|(_, block)| block.user.is_none()) {
            None => Ok(()),
            Some((granule, block)) => Err(contradiction(format!(
                "block {granule} of scope {} is in use, but nothing refers to it",
                block.scope
            ))),
        }
    }

    /// Extents that are owned, and that are free.
    pub(super) fn extents(&self) -> (u64, u64) {
        (self.extents_owned, self.extents_free)
    }
}

impl Check<'_, '_> {
    /// The locks of all partitions, with the one that has no tuples.
    fn partitions(&self) -> impl Iterator<Item = u32> + use<> {
        let shapes = (0..self.shapes).map(partition::scope_of);
        shapes.chain([head::NODE_MEMORY_SCOPE])
    }

    /// Whether `scope` is the lock of a partition.
    fn is_partition(&self, scope: u32) -> bool {
        let is_shape = || {
            let shape = partition::shape_of(scope);
            shape < self.shapes && partition::scope_of(shape) == scope
        };
        scope == head::NODE_MEMORY_SCOPE || scope >= partition::scope_of(0) && is_shape()
    }

    /// The spare blocks of all partitions are free, each of the class that it is a spare of, and nothing else.
    pub(super) fn check_spares(&self, blocks: &mut Blocks) -> Result<(), Error> {
        for scope in self.partitions() {
            self.check_spares_of(blocks, scope)?;
        }
        Ok(())
    }

    fn check_spares_of(&self, blocks: &mut Blocks, scope: u32) -> Result<(), Error> {
        let partition = Partition::of_scope(self.view, scope);
        for (_, class, block) in blocks::spares(partition) {
            let bytes = class_granules(class) as usize * tupelo_shm::GRANULE;
            let user = || format!("the spare block of class {class} of scope {scope}");
            blocks.claim(block, partition.scope(), bytes, user)?;
            let state = blocks::start(self.view, block).load(record::STATE);
            require(state == record::FREE, || format!("{} is in state {state}", user()))?;
        }
        Ok(())
    }
}

/// A list of slabs with room holds the ones of `scope` and that class, doubly linked, each once; so does a list of shared
/// extents.
fn check_list(
    check: &Check<'_, '_>,
    list: Word<'_>,
    scope: u32,
    class: usize,
    with_room: &mut WithRoom,
) -> Result<(), Error> {
    let (mut previous, mut next) = (0, list.load());
    while let Some(number) = next.checked_sub(1) {
        let found = with_room.remove(&number);
        require(found == Some((scope, class)), || {
            format!("scope {scope} lists slab {number:#x} for class {class}, which is {found:?}")
        })?;
        let entry = slab::entry(check.view, &check.engine.layout, number);
        require(entry.load(PREVIOUS) == previous, || {
            format!("slab {number:#x} does not lead back to {previous:#x}")
        })?;
        (previous, next) = (number + 1, entry.load(NEXT));
    }
    Ok(())
}
