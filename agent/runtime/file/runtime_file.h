/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts that an ELF file tells about a runtime: where its state is and how its structures are laid out. A runtime's
 * frames are linked in the heap (a chain), or are on the native stack as its compiled code's (code). Read once a file, by
 * the process that reads files (agent/helper/). No state.
 */
#ifndef HEARTH_AGENT_RUNTIME_FILE_RUNTIME_FILE_H
#define HEARTH_AGENT_RUNTIME_FILE_RUNTIME_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

struct elf_image;

enum runtime_file_kind {
	RUNTIME_FILE_NONE,
	RUNTIME_FILE_CHAIN, /* a runtime with chains */
	RUNTIME_FILE_LIBC,  /* a C library that tells where a thread's keys are */
	RUNTIME_FILE_CODE,  /* a runtime that makes code */
};

/* The runtimes that make code; each has a reader (agent/runtime/code/code_reader.h). */
enum code_id { CODE_HOTSPOT, CODE_V8, CODE_BEAM, CODE_DOTNET, CODE_GDB_JIT, CODE_PCRE, CODE_ID_MAX };

enum { CODE_FACTS = 96 };

/* The facts by which a reader of code begins: the reader's own numbers, such as ELF addresses of its tables or offsets
 * within its structures; 0: not known. */
struct code_facts {
	uint32_t id;	  /* enum code_id */
	uint32_t version; /* major << 16 | minor << 8 | micro; 0: not known */
	uint64_t fact[CODE_FACTS];
};

/* How a runtime was recognised. X(name, text) */
#define RUNTIME_WAYS(X)                 \
	X(DYNSYM, ".dynsym")            \
	X(SYMTAB, ".symtab")            \
	X(DEBUG_FILE, "its debug file") \
	X(CONTENT, "its content")

#define RUNTIME_WAY_NAME(name, text) RUNTIME_WAY_##name,
#define RUNTIME_WAY_TEXT(name, text) text,
enum runtime_way { RUNTIME_WAYS(RUNTIME_WAY_NAME) RUNTIME_WAY_MAX };

/* Plain bytes: goes from process to process. Addresses are ELF virtual addresses; 0: there is no such thing. */
struct runtime_file {
	uint32_t kind;	  /* enum runtime_file_kind */
	uint32_t id;	  /* RUNTIME_FILE_CHAIN: enum runtime_id */
	uint32_t version; /* major << 16 | minor << 8 | micro; 0: not known */
	uint32_t way;	  /* RUNTIME_FILE_CHAIN: enum runtime_way */
	struct {
		uint64_t start, end;
	} loop,	      /* code of the interpreter's loop, where segments without markers need it */
		body; /* code that the loop has in a function of its own: frames of scripts stand for it, too; 0: none */
	struct {
		uint64_t dynamic; /* the dynamic section */
		uint64_t debug;	  /* a program's word for debuggers in it (DT_DEBUG) */
	} linked;		  /* of any kind of file */
	struct {
		uint64_t buckets;   /* the variable that has the list of Go's own heap samples */
		uint64_t rate;	    /* the variable that says how many bytes are allocated from one to the next */
	} go_heap;		    /* of any kind of file; 0: it is no Go program, or they were not found */
	struct code_facts code;	    /* RUNTIME_FILE_CODE */
	struct chain_state state;   /* of a process with bias 0; asid and sequence numbers are 0. Of RUNTIME_FILE_LIBC only
				     * thread, of RUNTIME_FILE_CODE thread and offset, if a walk needs them */
	struct chain_state context; /* of any kind of file: how its threads say what they work on. runtime is CONTEXT_ID;
				     * 0: they do not */
};

/* Reads the ELF file that is mapped as @im. A file that is none of these has kind RUNTIME_FILE_NONE, and only linked. */
void runtime_file_read(const struct elf_image *im, struct runtime_file *ret);

/* Does @f, which came from a process that is not trusted, name a runtime that there is? */
bool runtime_file_is_sound(const struct runtime_file *f);

/* How the structures of one version of a runtime look. */
struct runtime_layout {
	uint16_t version; /* major << 8 | minor */
	uint16_t style;	  /* chain_state.style */
	uint16_t start;	  /* in the runtime's global variable: where the way to a thread's state begins */
	uint16_t offset[CHAIN_OFFSETS];
};

/* The row of @table, of @count, for the minor version of @version (as runtime_file has it); NULL: there is none. */
const struct runtime_layout *runtime_layout_find(const struct runtime_layout *table, size_t count, uint32_t version);

/* Does @f tell the way to a thread's state, as far as a file of a runtime can? */
static inline bool runtime_file_has_threads(const struct runtime_file *f)
{
	return f->kind == RUNTIME_FILE_CHAIN && (f->state.thread.addr || f->state.thread.place == THREAD_STACK ||
						 (f->state.thread.place == THREAD_TLS && f->state.thread.offset));
}

/* A table of symbols and that of their names; both are the image's. */
struct runtime_table {
	const uint8_t *symbols, *names;
	size_t symbol_cnt, names_bytes;
};

/* Finds those called @symbols_name and @names_name. False: not both are there. */
bool runtime_file_table(const struct elf_image *im, const char *symbols_name, const char *names_name,
			struct runtime_table *ret);

/* A symbol of .dynsym. */
struct runtime_symbol {
	uint64_t addr, size_bytes;
};

/* Finds @name by the file's GNU hash table, or else by looking at every symbol. 0 or -ENOENT. */
int runtime_file_symbol(const struct elf_image *im, const char *name, struct runtime_symbol *ret);

/* The same of .symtab, where a program that exports nothing has them: looks at every symbol. */
int runtime_file_own_symbol(const struct elf_image *im, const char *name, struct runtime_symbol *ret);

/* The same of .dynsym, or else of .symtab. */
int runtime_file_any_symbol(const struct elf_image *im, const char *name, struct runtime_symbol *ret);

/* The way to what the function @name returns, a variable of the thread's own, by its code. False: not known. */
bool runtime_file_thread(const struct elf_image *im, const char *name, struct thread_locator *ret);

/* The @len bytes that the file has for virtual address @addr; NULL: it has not all of them. */
const uint8_t *runtime_file_bytes(const struct elf_image *im, uint64_t addr, uint64_t len);

/* The function, or piece of code, that @addr is in by .eh_frame_hdr; its end may be a little further. False: not told. */
bool runtime_file_function(const struct elf_image *im, uint64_t addr, uint64_t *start_ret, uint64_t *end_ret);

/* Where the function that begins at @addr ends, or a little further, by .eh_frame_hdr; 0: not told. */
uint64_t runtime_file_function_end(const struct elf_image *im, uint64_t addr);

/* Is @im such a file? Then fills @ret. */
bool python_file_read(const struct elf_image *im, struct runtime_file *ret);
bool php_file_read(const struct elf_image *im, struct runtime_file *ret);
bool perl_file_read(const struct elf_image *im, struct runtime_file *ret);
bool hotspot_file_read(const struct elf_image *im, struct runtime_file *ret);
bool ruby_file_read(const struct elf_image *im, struct runtime_file *ret);
bool lua_file_read(const struct elf_image *im, struct runtime_file *ret);
bool lua_file_read_jit(const struct elf_image *im, struct runtime_file *ret);
bool beam_file_read(const struct elf_image *im, struct runtime_file *ret);
bool v8_file_read(const struct elf_image *im, struct runtime_file *ret);
bool libc_file_read(const struct elf_image *im, struct runtime_file *ret);
bool dotnet_file_read(const struct elf_image *im, struct runtime_file *ret);
bool gdb_jit_file_read(const struct elf_image *im, struct runtime_file *ret);
bool pcre_file_read(const struct elf_image *im, struct runtime_file *ret);

/* Fills runtime_file.context. */
void context_file_read(const struct elf_image *im, struct chain_state *ret);

/* Does the Go program @im set labels of goroutines? Then fills style and offset of @ret. */
bool go_labels_read(const struct elf_image *im, struct chain_state *ret);

/* Finds go_heap of a Go program. */
void go_heap_file_read(const struct elf_image *im, struct runtime_file *ret);

/* Completes @ret, the way by a key, where the file is a whole program with the C library in it; else leaves it as it is. */
void libc_static_read(const struct elf_image *im, struct thread_locator *ret);

#endif
