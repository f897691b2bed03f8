/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call tree as a picture: an SVG file that is complete in itself, with a script in it that zooms, searches and shows the
 * frame below the pointer; without scripts it is still a flame graph with tool tips. The root is at the top, children stand
 * by name, so that two pictures can be compared. Appearance and script: proto/flamegraph.css, proto/flamegraph.js.
 */
#ifndef HEARTH_PROTO_FLAMEGRAPH_H
#define HEARTH_PROTO_FLAMEGRAPH_H

#include "proto/tree.h"

/* Appends the picture of @t to @out. Frames narrower than a tenth of a pixel are not drawn, and that is said. 0 or -ENOMEM.
 */
int flamegraph_write_svg(struct tree *t, struct buf *out);

#endif
