/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is opened again and again, so that its calls are bound anew each time. */
#include "caller.h"
