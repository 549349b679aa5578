/* SPDX-License-Identifier: MIT */
/*
 * Static probes of the provider `refrain`, for bpftrace, perf, SystemTap and
 * gdb. A probe is one nop in the code, and a note in the program file that says
 * where the nop and its arguments are, so that a tracer can put a breakpoint
 * there. The table in doc/operations.md lists the probes. Without <sys/sdt.h>,
 * or with --disable-probes, there are no probes.
 *
 * Arguments are computed even if nobody traces, so they must cost nothing:
 * 64-bit integers, and pointers to strings that outlive the probe.
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#ifdef HAVE_PROBES
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#define TRACE(name, ...) STAP_PROBEV(refrain, name, __VA_ARGS__)
#else
/* no file defines this function, because it is never called */
int trace_nothing(int first, ...);
#define TRACE(name, ...) ((void)sizeof(trace_nothing(0, __VA_ARGS__)))
#endif

#endif
