/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readable names by libiberty; shorten_name bounds them. The mangling comes out of other people's files: libiberty bounds
 * its recursion by the length of C++ names and by a depth in Rust's, and here input and output are bounded too, since a
 * short name may stand for an exponentially long one. Nothing is kept but the setting; any thread.
 */
#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "symbols/shorten.h"

/*
 * libiberty's own limit is 1,024 bytes of C++, which names of today's programs exceed. The limit spares the stack: 4,096
 * bytes of the names that nest deepest take 0.85 MB of it.
 */
enum { MAX_NAME_BYTES = 64 << 10, MAX_CXX_BYTES = 4 << 10 };

static enum demangle_style style = DEMANGLE_SHORT;
static bool keep_hash;

void symbols_set_demangling(enum demangle_style new_style, bool new_keep_hash)
{
	style = new_style;
	keep_hash = new_keep_hash;
}

struct text {
	struct buf *out;
	size_t start; /* of the name in @out */
	jmp_buf too_long;
};

static bool is_ascii(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] & 0x80)
			return false;
	}
	return true;
}

/*
 * libiberty's printer cannot be told to stop; it holds its state on the stack, so it is left behind. All but what it decodes
 * from Rust's punycode, which is never ASCII: it frees that after this call, so the next one is waited for.
 */
static void append(const char *s, size_t len, void *arg)
{
	struct text *t = arg;

	if (t->out->len - t->start + len <= MAX_NAME_BYTES)
		buf_append(t->out, s, len);
	else if (is_ascii(s, len))
		longjmp(t->too_long, 1);
}

/* The start of the suffixes of compiler-made copies (.cold, .part.0, .llvm.123): a '.' with only such suffixes behind it. */
static const char *find_clones(const char *mangled)
{
	const char *end = mangled + strlen(mangled), *found = end;

	for (const char *p = end; p > mangled && strchr(".0123456789_abcdefghijklmnopqrstuvwxyz", p[-1]); p--) {
		if (p[-1] == '.')
			found = p - 1;
	}
	return found;
}

/* Appends the suffixes as libiberty does behind a parameter list; without a list libiberty drops them. */
static void append_clones(const char *p, struct buf *out)
{
	while (*p) {
		size_t len = 1 + strcspn(p + 1, ".");

		while (p[len] == '.' && p[len + 1] >= '0' && p[len + 1] <= '9')
			len += 1 + strcspn(p + len + 1, ".");
		buf_puts(out, " [clone ");
		buf_append(out, p, len);
		buf_putc(out, ']');
		p += len;
	}
}

static bool run_cxx(const char *mangled, struct text *t)
{
	int options = DMGL_NO_RECURSE_LIMIT | (style == DEMANGLE_FULL ? DMGL_PARAMS | DMGL_ANSI | DMGL_VERBOSE : 0);

	if (strlen(mangled) > MAX_CXX_BYTES || !cplus_demangle_v3_callback(mangled, options, append, t) ||
	    t->out->len == t->start)
		return false;
	if (style != DEMANGLE_FULL)
		append_clones(find_clones(mangled), t->out);
	return true;
}

static bool run(const char *mangled, struct buf *out)
{
	struct text t = { .out = out, .start = out->len };

	if (!setjmp(t.too_long)) {
		if (rust_demangle_callback(mangled, keep_hash ? DMGL_VERBOSE : DMGL_NO_OPTS, append, &t) &&
		    out->len > t.start)
			return true;
		out->len = t.start;
		if (run_cxx(mangled, &t))
			return true;
	}
	out->len = t.start;
	return false;
}

bool symbols_is_mangled(const char *name, size_t len)
{
	return len > 2 && len <= MAX_NAME_BYTES && name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

void symbols_demangle(const char *name, size_t len, struct buf *out)
{
	bool is_wanted = style != DEMANGLE_NONE && symbols_is_mangled(name, len);
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	AUTO_FREE char *mangled = is_wanted ? strndup(name, len) : NULL;

	/* A Rust name's punycode may stand for half of a surrogate pair, which is no character. */
	if (!mangled || !run(mangled, &text) || !utf8_is_valid(text.data, text.len))
		buf_append(out, name, len);
	else if (style == DEMANGLE_SHORT)
		shorten_name((char *)text.data, text.len, DEMANGLE_SHORT_DEPTH, DEMANGLE_SHORT_BYTES, out);
	else
		buf_append(out, text.data, text.len);
	out->failed |= text.failed;
}

void symbols_demangle_as(enum demangle_style other, const char *name, size_t len, struct buf *out)
{
	enum demangle_style before = style;

	style = other;
	symbols_demangle(name, len, out);
	style = before;
}
