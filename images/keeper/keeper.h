/* The keeper's loop. */
#ifndef KEEPER_H
#define KEEPER_H

_Noreturn void keep(int own_connection, int listener);

#endif
