/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as people read them: C++ (Itanium) and Rust (legacy, v0) demangled; C, Go, Swift, D and whatever else as they are in
 * the file. The style is one setting of the whole program, as the level of messages is, because names are made in several
 * places and processes.
 */
#ifndef HEARTH_SYMBOLS_DEMANGLE_H
#define HEARTH_SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

enum demangle_style {
	DEMANGLE_SHORT, /* what perf and flame graphs show: no parameter lists (overloads share a name), bounded */
	DEMANGLE_FULL,	/* what c++filt says: with parameter lists */
	DEMANGLE_NONE,	/* as in the file */
};

/* A short name has at most so many bytes, and template arguments within each other at most so deep; "..." stands for what
 * was left out. */
enum { DEMANGLE_SHORT_BYTES = 512, DEMANGLE_SHORT_DEPTH = 8 };

/*
 * Sets the style of names; DEMANGLE_SHORT without Rust's hashes at first. Call it before there are threads or processes that
 * make names. @keep_hash: with the hash at the end of Rust's legacy names and the crates' in its newer ones.
 */
void symbols_set_demangling(enum demangle_style style, bool keep_hash);

/* Does @name look like one that symbols_demangle would change? */
bool symbols_is_mangled(const char *name, size_t len);

/*
 * Appends the @len bytes of @name, demangled, to @out. Copies by the compiler end in " [clone .cold]". C++ names of more
 * than 4,096 bytes, others of more than 65,536, and those that stand for more than 65,536 stay mangled. The appended text is
 * not longer than that, or than @name.
 */
void symbols_demangle(const char *name, size_t len, struct buf *out);

/* The same in style @other, whatever is set. Not while other threads make names. */
void symbols_demangle_as(enum demangle_style other, const char *name, size_t len, struct buf *out);

#endif
