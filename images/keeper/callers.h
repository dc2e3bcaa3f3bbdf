/* Connections that have not said yet what they are: the agent's next one, or another keeper's fence. */
#ifndef CALLERS_H
#define CALLERS_H

#include "../common/types.h"

void callers_begin(int own_connection, int listener);
void callers_watch(void);
void callers_serve(i64 now);
i64 callers_deadline(void);

#endif
