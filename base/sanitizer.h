/* SPDX-License-Identifier: Apache-2.0 */
/* Was this built with the address sanitizer? The shadow needs more address space than our limits give, and the reports
 * need system calls that our filters refuse. */
#ifndef HEARTH_BASE_SANITIZER_H
#define HEARTH_BASE_SANITIZER_H

#ifdef __has_feature /* clang; gcc says it by a macro */
#if __has_feature(address_sanitizer)
#define HAS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#endif

#ifndef HAS_SANITIZER
#define HAS_SANITIZER 0
#endif

#endif
