//! The sizes of blocks: classes, so that freed blocks are used again as they are.
//!
//! Each size exists twice: for tuples, and for what serves takers ([`crate::store::blocks`]).

use tupelo_shm::GRANULE;

use crate::base::layout::EXTENT_BYTES;

/// Sizes of blocks, in granules. The largest are as many as an extent can be cut into 8, 6, 5, 4, 3 and 2 of. A tuple
/// with an array of 16 KiB is one of three.
const SIZES: [u16; 28] = [
    1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 170, 204,
    256, 341, 512,
];
pub(crate) const SIZES_COUNT: usize = SIZES.len();
/// How many lists of slabs a partition has: those of tuples, and then those that may lie beyond the limit.
pub(crate) const CLASSES_COUNT: usize = 2 * SIZES_COUNT;
/// Sizes of the classes, in granules.
pub(crate) const CLASSES: [u16; CLASSES_COUNT] = {
    let mut classes = [0; CLASSES_COUNT];
    let mut class = 0;
    while class < CLASSES_COUNT {
        classes[class] = SIZES[class % SIZES_COUNT];
        class += 1;
    }
    classes
};

/// Largest block that is cut from an extent; beyond it, whole extents.
pub(crate) const BLOCK_BYTES_MAX: usize = SIZES[SIZES_COUNT - 1] as usize * GRANULE;

/// The class of tuples for blocks of this many granules, by table up to 16.
#[inline]
pub(crate) fn class_for(granules: usize) -> usize {
    const SMALL: [usize; 17] = {
        let mut table = [0; 17];
        let (mut granules, mut class) = (1, 0);
        while granules <= 16 {
            while (CLASSES[class] as usize) < granules {
                class += 1;
            }
            table[granules] = class;
            granules += 1;
        }
        table
    };
    if granules <= 16 {
        SMALL[granules]
    } else {
        SIZES.partition_point(|size| (*size as usize) < granules)
    }
}

/// The bytes of the smallest block, or extents, of at least `bytes`.
pub(crate) fn whole_bytes(bytes: usize) -> usize {
    if bytes > BLOCK_BYTES_MAX {
        return bytes.next_multiple_of(EXTENT_BYTES);
    }
    class_granules(class_for(bytes.div_ceil(GRANULE))) as usize * GRANULE
}

/// The granules of a block of class `class`.
#[inline]
pub(crate) fn class_granules(class: usize) -> u32 {
    u32::from(CLASSES[class.min(CLASSES_COUNT - 1)])
}
