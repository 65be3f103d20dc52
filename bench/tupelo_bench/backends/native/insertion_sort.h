#ifndef INSERTION_SORT_H
#define INSERTION_SORT_H
// The sort of `bench sort`, which every peer has: compiled for Python, and into the programs of others.

#include <stddef.h>
#include <stdint.h>

static inline void insertion_sort(int64_t *numbers, size_t count) {
  for (size_t next = 1; next < count; next++) {
    int64_t number = numbers[next];
    size_t place = next;
    for (; place > 0 && numbers[place - 1] > number; place--) numbers[place] = numbers[place - 1];
    numbers[place] = number;
  }
}

#endif
