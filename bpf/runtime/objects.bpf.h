/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of functions on their way to user space: which ones this CPU has sent of late and may be believed to be the same,
 * and the copy of one that was not sent. A part of chain.bpf.h, which alone includes this, behind what it stands on.
 */
#ifndef HEARTH_BPF_RUNTIME_OBJECTS_H
#define HEARTH_BPF_RUNTIME_OBJECTS_H

/* Takes @word into a checksum. */
static __always_inline __u64 mix(__u64 sum, __u64 word)
{
	return (sum << 7 | sum >> 57) ^ word * 0x9E3779B97F4A7C15ull;
}

static __always_inline __u32 witness_of(__u64 word)
{
	return word ^ word >> 32;
}

/* The entry of the object at @addr; where it has none, the one that was not looked at for longest. NULL: never. */
static __always_inline struct sent_object *find_sent(const struct chain *c, __u64 addr)
{
	__u32 pid = c->scratch->sample.pid, way = 0, at;
	volatile __u32 *in_memory = &c->work->sent_way;
	struct sent_set *set;

	at = c->work->sent_first + ((addr ^ (__u64)pid << 40) * 0x9E3779B97F4A7C15ull >> (64 - SENT_SETS_SHIFT));
	set = bpf_map_lookup_elem(&sent_objects, &at);
	if (!set)
		return NULL;
#pragma GCC unroll 4
	for (__u32 i = 0; i < SENT_WAYS; i++) {
		if (set->way[i].addr == addr && set->way[i].pid == pid) {
			way = i;
			goto found;
		}
	}
#pragma GCC unroll 4
	for (__u32 i = 1; i < SENT_WAYS; i++)
		if ((__s32)(set->way[i].checked - set->way[way].checked) < 0)
			way = i;
found:
	*in_memory = way; /* so that the verifier goes on with one state */
	return &set->way[masked(*in_memory, SENT_WAYS - 1)];
}

/* Is the object at @addr believed to be the one that was looked at a moment ago? One that was looked at for another frame of
 * this sample is: the chain holds it. */
static __always_inline bool is_sent_now(const struct chain *c, const struct sent_object *sent, __u64 addr, __u64 witness)
{
	if (sent->addr != addr || sent->pid != c->scratch->sample.pid)
		return false;
	return sent->sample == c->work->sample ||
	       (sent->witness == witness_of(witness) && c->work->now - sent->checked < RECHECK_TICKS &&
		c->work->now - sent->since > OLD_TICKS);
}

/* Where is noted what the frame at @frame is. */
static __always_inline struct believed *believed_at(const struct chain *c, __u64 frame)
{
	__u64 at = (frame >> 6) + ((frame >> 20) + c->scratch->sample.pid) * 41;

	return &c->work->believed[masked(at, BELIEVED - 1)];
}

/* Is the frame believed to be of @object still, whose check and line are noted? */
static __always_inline bool is_believed(const struct chain *c, const struct believed *b, __u64 object, __u64 with)
{
	return b->object == object && b->with == with && b->pid == c->scratch->sample.pid &&
	       (__s32)(b->until - c->work->now) > 0;
}

/* Notes it until the object @sent, which is believed, is looked at again; not of a young one. */
static __always_inline void believe(const struct chain *c, struct believed *b, const struct sent_object *sent, __u64 object,
				    __u64 with, __u32 line)
{
	if (c->work->now - sent->since <= OLD_TICKS)
		return;
	b->object = object;
	b->with = with;
	b->pid = sent->pid;
	b->check = sent->check;
	b->line = line;
	b->until = sent->checked + RECHECK_TICKS;
}

/* Notes that the object at @addr, which is not sent, was looked at, and its checksum is @check. */
static __always_inline void note_seen(const struct chain *c, struct sent_object *sent, __u64 addr, __u64 witness,
				      __u32 check)
{
	__u32 pid = c->scratch->sample.pid;

	if (sent->addr != addr || sent->pid != pid || sent->check != check)
		sent->since = c->work->now;
	sent->addr = addr;
	sent->pid = pid;
	sent->check = check;
	sent->witness = witness_of(witness);
	sent->checked = c->work->now;
	sent->sample = c->work->sample;
}

/* Was the object at @addr, whose checksum is @check, sent lately? */
static __always_inline bool is_sent(const struct chain *c, struct sent_object *sent, __u64 addr, __u64 witness, __u32 check)
{
	if (sent->addr != addr || sent->pid != c->scratch->sample.pid || sent->check != check ||
	    (c->work->now - sent->since) >> RESEND_SHIFT != (sent->checked - sent->since) >> RESEND_SHIFT)
		return false;
	sent->witness = witness_of(witness);
	sent->checked = c->work->now;
	sent->sample = c->work->sample;
	return true;
}

/* May this sample send one more object? */
static __always_inline bool has_object_tokens(struct chain *c)
{
	__u64 now_ns = c->scratch->sample.hdr.time_ns, floor = now_ns - OBJECT_BURST_SECONDS * 1000000000ull;

	if (c->cpu->object_tokens < floor)
		c->cpu->object_tokens = floor;
	if (c->cpu->object_tokens <= now_ns)
		return true;
	count(c->cpu, COUNTER_OBJECT_LIMIT);
	return false;
}

static __always_inline void object_begin(struct chain *c, __u64 addr)
{
	struct object_record *o = &c->work->object;

	__builtin_memset(o, 0, sizeof(*o));
	o->addr = addr;
}

/* Appends the @bytes at @addr, @max (2^n - 1) at most, as part @part. Returns where the next part goes. */
static __always_inline __u32 object_part(struct chain *c, __u32 part, __u32 at, __u64 addr, __u64 bytes, const __u64 max)
{
	struct object_record *o = &c->work->object;

	if (bytes > max) {
		o->is_cut |= 1 << part;
		bytes = max;
	}
	bytes = masked(bytes, max);
	if (!bytes)
		return at;
	if (bpf_probe_read_user(c->work->data + masked(at, OBJECT_DATA_BYTES - 1), bytes, (void *)addr)) {
		o->is_cut |= 1 << part;
		count(c->cpu, COUNTER_OBJECT_UNREADABLE);
		return at;
	}
	o->part_bytes[part] = bytes;
	return at + bytes;
}

/* Sends the object, whose parts take @bytes. */
static __always_inline void object_send(struct chain *c, struct sent_object *sent, __u64 witness, __u32 id, __u32 check,
					__u32 bytes)
{
	const struct sample_record *sample = &c->scratch->sample;
	struct object_record *o = &c->work->object;
	__u32 index = c->scratch->walk.ring;
	void *ring = bpf_map_lookup_elem(&rings, &index);
	__u64 size = sizeof(*o) + masked(bytes, OBJECT_DATA_BYTES - 1);

	o->hdr.kind = RECORD_OBJECT;
	o->hdr.level = c->scratch->walk.level;
	o->hdr.version = RECORD_VERSION;
	o->hdr.size = size;
	o->hdr.time_ns = sample->hdr.time_ns;
	o->hdr.cpu = c->scratch->walk.cpu;
	o->pid = sample->pid;
	o->asid = c->scratch->walk.asid;
	o->runtime = id;
	o->check = check;
	if (!ring || bpf_ringbuf_output(ring, o, size, BPF_RB_NO_WAKEUP)) {
		count(c->cpu, COUNTER_OBJECT_RING);
		return;
	}
	count(c->cpu, COUNTER_OBJECTS);
	c->cpu->object_tokens += size * (1000000000ull / OBJECT_BYTES_A_SECOND);
	note_seen(c, sent, o->addr, witness, check);
}

/* Has the object, which was sent now, sent again in a second. It passes for an old one. */
static __always_inline void send_again(const struct chain *c, struct sent_object *sent)
{
	sent->since = c->work->now + RECHECK_TICKS - (1u << RESEND_SHIFT);
}

#endif
