/* What is alive in this container: sessions, found by their tags, and abandoned shells of execs. */
#ifndef SESSIONS_H
#define SESSIONS_H

#include "../common/types.h"

u64 tag_for(const char *nonce);
void tag_self(u64 tag);
bool sessions_report(void);
void strays_end(void);

#endif
