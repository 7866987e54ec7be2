/* The outer optimizer of Farstep for programs with a training loop of their own: a flat C
 * interface.
 *
 * Each of N sites is one process. It takes inner steps with an optimizer of its own on flat fp32
 * values in host memory. After H of them it calls farstep_outer_sync(): the sites' deltas are
 * averaged, the outer Nesterov step is taken, and all sites go on from the same bits (DiLoCo,
 * Douillard et al. 2023). docs/library.md explains settings, losses and deadlines.
 *
 * A call returns a status, and never lets an exception out. One thread at a time uses a site,
 * except for farstep_outer_stop(). Signals are the program's own affair. <farstep/outer.h> is the
 * same for C++.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FARSTEP_OUTER_API __attribute__((visibility("default")))

/* One site of a run. */
typedef struct farstep_outer farstep_outer;

/* The status of a call: the exit codes of the command `farstep`. */
enum {
  FARSTEP_OK = 0,
  FARSTEP_INTERNAL = 1,   /* a bug, or values that differ among the sites */
  FARSTEP_CONFIG = 2,     /* a wrong setting or argument */
  FARSTEP_DATA = 3,       /* a wrong file, or sites that start from different values */
  FARSTEP_PEER = 4,       /* another site, the coordinator or a link is lost */
  FARSTEP_DIVERGENCE = 5, /* a value is not finite */
  FARSTEP_STOPPED = 130   /* farstep_outer_stop() was called */
};

/* What the inner steps since the last sync were; it decides the weight of this site's delta. */
typedef struct {
  int64_t steps;  /* inner steps; 0: the delta counts nothing */
  int64_t batch;  /* examples of one step */
  int64_t tokens; /* targets (tokens, labels) of all these steps */
} farstep_outer_work;

/* What a sync did. */
typedef struct {
  int64_t round;           /* the number of the sync, from 1 */
  int64_t generation;      /* of the membership: a higher one after a loss */
  int64_t sites;           /* that took part */
  double averaging_weight; /* of this site's delta in the mean */
  double wait_seconds;     /* from this site's coming until all sites had come */
  double exchange_seconds; /* from then until the sync counted at all sites */
  char hash[17];           /* of the new values, equal at all sites: 16 hexadecimal digits and 0 */
} farstep_outer_round;

FARSTEP_OUTER_API const char* farstep_outer_version(void);

/* Of this thread's newest call that failed: what happened, and what to do. Valid until the thread's
 * next call. */
FARSTEP_OUTER_API const char* farstep_outer_error(void);
/* The lost site that it is about; empty if there is none, or it is the coordinator. */
FARSTEP_OUTER_API const char* farstep_outer_error_site(void);

/* Joins a run with the `size` values from which all sites start, and waits until all sites have
 * joined, deadlines.join_seconds at most. `run` and `site` are JSON texts. The values are copied.
 * Writes the site to `*joined`, or NULL if it fails. */
FARSTEP_OUTER_API int farstep_outer_join(const char* run, const char* site, const float* values,
                                         int64_t size, farstep_outer** joined);

/* Ends an outer round. `values` are what this site's inner steps made of the values after the last
 * sync, or of those of farstep_outer_join(). They are replaced by the new common values. Waits
 * until the sync counts at all sites. `round` may be NULL. If it fails, the values are unchanged.
 * The site has left the run then, unless an argument was wrong or the status is FARSTEP_STOPPED. */
FARSTEP_OUTER_API int farstep_outer_sync(farstep_outer* site, float* values, int64_t size,
                                         const farstep_outer_work* work,
                                         farstep_outer_round* round);

/* Ends the wait of a sync, present or future, for other sites: it returns FARSTEP_STOPPED. Any
 * thread may call it, but no signal handler. */
FARSTEP_OUTER_API void farstep_outer_stop(farstep_outer* site);

/* The members after the newest sync, or at the start: their number, this site's place among them,
 * and the name at a place, which is valid until the next sync; NULL beyond the last. */
FARSTEP_OUTER_API int64_t farstep_outer_members(const farstep_outer* site);
FARSTEP_OUTER_API int64_t farstep_outer_place(const farstep_outer* site);
FARSTEP_OUTER_API const char* farstep_outer_member(const farstep_outer* site, int64_t place);

/* Copies the outer momentum out, for a checkpoint, or in, before the first sync and equally at all
 * sites. `size` as in farstep_outer_join(). */
FARSTEP_OUTER_API int farstep_outer_get_momentum(const farstep_outer* site, float* momentum,
                                                 int64_t size);
FARSTEP_OUTER_API int farstep_outer_set_momentum(farstep_outer* site, const float* momentum,
                                                 int64_t size);

/* Leaves the run. `failure`: why this site gives up; NULL: it is done. A site that hosts the
 * coordinator waits for the others to leave, at most deadlines.join_seconds. */
FARSTEP_OUTER_API int farstep_outer_leave(farstep_outer* site, const char* failure);

/* Ends a site, or does nothing for NULL. To the others a site that has not left is lost. */
FARSTEP_OUTER_API void farstep_outer_free(farstep_outer* site);

#ifdef __cplusplus
}
#endif
