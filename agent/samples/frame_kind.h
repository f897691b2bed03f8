/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of frames: one table says how they differ, and code asks for a property of a frame's kind, never which kind it
 * is. A new kind is a row here and, where its names come from a new place, a namer.
 */
#ifndef HEARTH_AGENT_SAMPLES_FRAME_KIND_H
#define HEARTH_AGENT_SAMPLES_FRAME_KIND_H

#include <stdbool.h>

enum frame_kind { FRAME_KERNEL, FRAME_NATIVE, FRAME_ANONYMOUS, FRAME_SCRIPTED, FRAME_KIND_MAX };

/* The source that knows a frame's name; it decides by which values the frame is known. */
enum frame_namer {
	NAMER_KERNEL,  /* the kernel's symbols: by address and trace_frame.kernel_code */
	NAMER_FILE,    /* the index of names of trace_frame.file: by ELF address */
	NAMER_RUNTIME, /* the runtimes (agent/runtime/): by trace_frame.process, address and time */
	NAMER_OBJECT,  /* trace_frame.object, by the place in it */
	NAMER_MAX,
};

struct frame_kind_info {
	const char *type; /* profile.frame.type, where neither its file nor its name tells a better one */
	enum frame_namer namer;
	const char *module; /* to which the frame belongs where nothing says more; "": its file */
	bool is_user;	    /* the frame is on the user's stack */
};

extern const struct frame_kind_info frame_kinds[FRAME_KIND_MAX];

#endif
