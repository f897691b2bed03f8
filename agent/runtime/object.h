/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions' objects that the kernel copied (struct object_record): each runtime has a reader that makes a script of one
 * (symbols/script/script.h). The records hold what another process has in its memory: nothing in them is believed. No state.
 */
#ifndef HEARTH_AGENT_RUNTIME_OBJECT_H
#define HEARTH_AGENT_RUNTIME_OBJECT_H

#include "base/buf.h"
#include "bpf/event.h"
#include "symbols/script/script.h"

/* Makes a script of @r, of which hdr.size bytes can be read, by the @layout of its runtime, behind the content of @out. 0;
 * -EBADMSG: the record makes no sense; -ENOMEM. */
int object_read(const struct object_record *r, const struct chain_state *layout, struct buf *out);

/* The type of frames of the runtime @id (struct object's runtime): a word of OpenTelemetry's profile.frame.type. */
const char *object_frame_type(uint32_t id);

/* For the readers: the record's parts. 0 or -EBADMSG. */
int object_parts(const struct object_record *r, const uint8_t *parts[static OBJECT_PARTS]);

/* For the readers: the 32-bit word at @offset, which another process may have chosen, of part @part; 0 where there is none.
 */
uint32_t object_word(const struct object_record *r, const uint8_t *const *parts, int part, uint32_t offset);

/* The readers. */
int python_object_read(const struct object_record *r, const struct chain_state *layout, struct buf *out);
int php_object_read(const struct object_record *r, const struct chain_state *layout, struct buf *out);
int perl_object_read(const struct object_record *r, const struct chain_state *layout, struct buf *out);
int ruby_object_read(const struct object_record *r, const struct chain_state *layout, struct buf *out);
int lua_object_read(const struct object_record *r, const struct chain_state *layout, struct buf *out);
int lua_object_read_jit(const struct object_record *r, const struct chain_state *layout, struct buf *out);

#endif
