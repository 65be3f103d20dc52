//! Extents and blocks: each has exactly one owner.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::error::Error;
use crate::base::layout::{EXTENT_GRANULES, head};
use crate::inspect::check::{Check, contradiction, require};
use crate::store::arena::{self, BLOCKS, BUMP, FREE_LIST, KIND, LIVE, NEXT, OWNER, PREVIOUS, RUN};
use crate::store::blocks::{self, CLASSES_COUNT};
use crate::store::partition::{self, Partition};
use crate::store::record;

/// Every block that is in use, and who was found to use it.
pub(super) struct Blocks {
    /// By first granule.
    used: BTreeMap<u32, Block>,
    extents_owned: u64,
    extents_free: u64,
}

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
        let mut with_room = BTreeMap::new();
        let mut index = 0;
        while index < committed {
            index += blocks.survey_extent(check, index, committed, &mut with_room)?;
        }
        let counted = line.load(arena::FREE);
        require(blocks.extents_free == u64::from(counted), || {
            format!("{counted} extents are counted as free, {} are", blocks.extents_free)
        })?;
        for shape in 0..check.shapes {
            for class in 0..CLASSES_COUNT {
                check_list(check, shape, class, &mut with_room)?;
            }
        }
        match with_room.first_key_value() {
            None => Ok(blocks),
            Some((index, _)) => {
                Err(contradiction(format!("extent {index} has room but is in no list")))
            }
        }
    }

    /// Surveys what begins at extent `index`. Returns how many extents it has.
    fn survey_extent(
        &mut self,
        check: &Check<'_, '_>,
        index: u32,
        committed: u32,
        with_room: &mut BTreeMap<u32, (u32, usize)>,
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
        let is_partition = (0..check.shapes).any(|shape| partition::scope_of(shape) == owner);
        let first = layout.extent_granule(index);
        let extents = if kind & 0xff == BLOCKS { 1 } else { entry.load(LIVE) };
        match kind & 0xff {
            BLOCKS => {
                let class = (kind >> 8) as usize;
                require(is_partition && class < CLASSES_COUNT, || {
                    format!("extent {index} is of class {class} and belongs to scope {owner}")
                })?;
                self.survey_blocks(check, index, class, owner)?;
                if blocks::has_room(entry, class) {
                    with_room.insert(index, (owner, class));
                }
            }
            RUN => {
                let special = [head::ARENA_SCOPE, head::NODES_SCOPE].contains(&owner);
                require((is_partition || special) && extents > 0, || {
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

    /// Every block of an extent that was ever used is in its free list or in use.
    fn survey_blocks(
        &mut self,
        check: &Check<'_, '_>,
        index: u32,
        class: usize,
        scope: u32,
    ) -> Result<(), Error> {
        let entry = arena::entry(check.view, &check.engine.layout, index);
        let (size, first) =
            (blocks::class_granules(class), check.engine.layout.extent_granule(index));
        let bump = entry.load(BUMP);
        require(bump <= EXTENT_GRANULES / size, || {
            format!("extent {index} has {bump} blocks of {size} granules")
        })?;
        let mut free = BTreeSet::new();
        let mut at = entry.load(FREE_LIST);
        while at != 0 {
            let inside =
                at >= first && (at - first).is_multiple_of(size) && (at - first) / size < bump;
            require(inside && free.insert(at), || {
                format!("the free list of extent {index} comes to granule {at}, or again")
            })?;
            let header = blocks::start(check.view, at);
            let state = header.load(record::STATE);
            require(state == record::FREE, || {
                format!("block {at} is in the free list of extent {index} in state {state}")
            })?;
            at = header.load(record::FREE_NEXT);
        }
        let live = entry.load(LIVE);
        require(live as usize + free.len() == bump as usize, || {
            format!("extent {index} counts {live} blocks in use and {} free of {bump}", free.len())
        })?;
        let bytes = size as usize * tupelo_shm::GRANULE;
        let all = (0..bump).map(|number| first + number * size);
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
    /// A spare block is free, of the class that it is a spare of, and nothing else.
    pub(super) fn check_spares(&self, blocks: &mut Blocks, shape: u32) -> Result<(), Error> {
        let partition = Partition::of_shape(self.view, shape);
        for (_, class, block) in blocks::spares(partition) {
            let bytes = blocks::class_granules(class) as usize * tupelo_shm::GRANULE;
            let user = || format!("the spare block of class {class} of shape {shape}");
            blocks.claim(block, partition.scope(), bytes, user)?;
            let state = blocks::start(self.view, block).load(record::STATE);
            require(state == record::FREE, || format!("{} is in state {state}", user()))?;
        }
        Ok(())
    }
}

/// A partition's list of extents with room holds its own ones of that class, doubly linked, each once.
fn check_list(
    check: &Check<'_, '_>,
    shape: u32,
    class: usize,
    with_room: &mut BTreeMap<u32, (u32, usize)>,
) -> Result<(), Error> {
    let partition = Partition::of_shape(check.view, shape);
    let (mut previous, mut number) = (0, partition.page().load(blocks::list_of(class)));
    while number != 0 {
        let found = with_room.remove(&(number - 1));
        require(found == Some((partition.scope(), class)), || {
            format!(
                "shape {shape} lists extent {} for class {class}, which is {found:?}",
                number - 1
            )
        })?;
        let entry = arena::entry(check.view, &check.engine.layout, number - 1);
        require(entry.load(PREVIOUS) == previous, || {
            format!("extent {} does not lead back to {previous}", number - 1)
        })?;
        (previous, number) = (number, entry.load(NEXT));
    }
    Ok(())
}
