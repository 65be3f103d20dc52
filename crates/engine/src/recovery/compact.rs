//! Emptying slabs of which few blocks are in use, where a space has no extent left (rule B1). Small tuples that are left
//! of many would keep most of the memory otherwise.
//!
//! Each step locks one partition, and moves some records from the emptiest slab of a size to the fullest others of
//! that size ([`crate::index::moving`]). What can not be moved keeps its slab: what is held, has a lease, or was read
//! by an open transaction.
//!
//! Not in a space that drops its oldest tuples, which makes room that way: there each put would look for what can be moved.

use tupelo_shm::Section;

use crate::base::error::Error;
use crate::index::moving;
use crate::recovery::provide::{self, Gathering};
use crate::store::arena::{self, LIVE};
use crate::store::partition::{self, Partition};
use crate::store::record::STATE;
use crate::store::sizes::SIZES_COUNT;
use crate::store::{Store, blocks, fullness, record, registry, slab, sparse, step};
use crate::time::bounded_lock;

/// Records that are moved while a partition is locked: some 30 us.
const MOVES_MAX: usize = 64;
/// How often a call locks a partition to move some.
const STEPS_MAX: u32 = 1024;
/// Slabs with something that can not be moved after which a call leaves those of a size alone.
const PASSED_MAX: usize = 32;

/// What came of a step.
enum Step {
    /// Some were moved, or a slab was found that keeps its blocks.
    Done,
    /// There is nothing to move.
    Nothing,
}

/// Moves records until `is_enough`, or for as long as there are some to move, and a call may. Returns whether it is enough.
#[cold]
pub(crate) fn compact(
    store: &Store,
    gathering: Gathering,
    is_enough: impl Fn() -> bool,
) -> Result<bool, Error> {
    if fullness::drops_oldest(store) {
        return Ok(is_enough());
    }
    let mut steps = STEPS_MAX;
    for shape in 0..registry::count(&store.memory.view()) {
        for class in 0..SIZES_COUNT {
            let mut passed = Vec::new();
            while steps > 0 && passed.len() < PASSED_MAX && !is_enough() {
                if !has_several(store, shape, class) {
                    break;
                }
                steps -= 1;
                let step = provide::retry_by(store, gathering, || {
                    move_some(store, shape, class, &mut passed, gathering)
                })?;
                match step {
                    Step::Done => {}
                    Step::Nothing => break,
                }
            }
        }
    }
    Ok(is_enough())
}

/// Whether several slabs for blocks of `class` have room: by a look without the lock.
fn has_several(store: &Store, shape: u32, class: usize) -> bool {
    let view = store.memory.view();
    let first = blocks::list_of(Partition::of_shape(&view, shape), class).load();
    first != 0 && slab::entry(&view, &store.layout, first - 1).load(arena::NEXT) != 0
}

fn move_some(
    store: &Store,
    shape: u32,
    class: usize,
    passed: &mut Vec<u32>,
    gathering: Gathering,
) -> Result<Step, Error> {
    let (scope, layout) = (partition::scope_of(shape), &store.layout);
    let entered = match gathering {
        Gathering::Waits => Some(Section::enter(&store.memory, scope)?),
        Gathering::PassesOver => bounded_lock::enter_if_free(store, scope)?,
    };
    let Some(mut section) = entered else { return Ok(Step::Nothing) };
    let partition = Partition::of_shape(section.view(), shape);
    // They count as in use.
    blocks::free_spares(&mut section, layout, partition)?;
    section.commit()?;
    let Some(sparse) = sparse::sparsest(section.view(), layout, partition, class, passed) else {
        section.finish()?;
        return Ok(Step::Nothing);
    };
    let victim = slab::entry(section.view(), layout, sparse.number);
    let in_use: Vec<u32> = slab::blocks(section.view(), layout, sparse.number, class)
        .filter(|block| blocks::start(section.view(), *block).load(STATE) != record::FREE)
        .collect();
    let is_movable = |block: &u32| moving::is_movable(section.view(), partition, *block);
    let live = victim.load(LIVE) as usize;
    // What belongs to a tuple, or to none, begins as a free block does, and counts as in use.
    if in_use.len() != live || !in_use.iter().all(is_movable) {
        passed.push(sparse.number);
        section.finish()?;
        return Ok(Step::Done);
    }
    let list = blocks::list_of(partition, class);
    let (mut others, mut moved) = (sparse.others.into_iter().peekable(), 0);
    for from in in_use.into_iter().take(MOVES_MAX) {
        step::commit_if_full(&mut section)?;
        let entry = |number| slab::entry(section.view(), layout, number);
        let has_room = |number| slab::has_room(entry(number), number, class);
        while others.peek().is_some_and(|number| !has_room(*number)) {
            others.next();
        }
        let Some(number) = others.peek() else { break };
        let to = blocks::allocate_from(&mut section, layout, *number, class, list);
        moving::move_record(&mut section, partition, from, to);
        let first = blocks::start(section.view(), from);
        section.note_freed(from);
        blocks::free_in_slab(&mut section, layout, partition, from, first, class)?;
        moved += 1;
    }
    if moved == live {
        // It may be the only one left of its list, and so be kept.
        blocks::free_empty(&mut section, layout, partition)?;
    }
    section.finish()?;
    Ok(Step::Done)
}
