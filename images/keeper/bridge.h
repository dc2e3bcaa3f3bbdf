/* Bytes between the exec's stdin and stdout and the keeper's connection. */
#ifndef BRIDGE_H
#define BRIDGE_H

#include "../common/types.h"

int bridge_carry(int connection, pid_t keeper);
void leave_streams(void);

#endif
