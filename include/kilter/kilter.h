/**
 * @file
 * Includes all headers except kilter/loop.h, which needs MPI.
 *
 * @mainpage
 * Kilter keeps a parallel program in balance on machines that are unequal, shared and changing.
 *
 * | header | what for |
 * |---|---|
 * | kilter/farm.h | a master deals tasks to workers and gets each result once |
 * | kilter/run.h | a run: the tasks of a farm, their inputs and results |
 * | kilter/policy.h | a policy of your own: how many tasks a worker gets next |
 * | kilter/predict.h | how long a program takes on given workers |
 * | kilter/random.h | random numbers of a task, the same on any worker |
 * | kilter/sum.h | exact sums of doubles, in any order |
 * | kilter/loop.h | a loop whose rows move between the ranks of an MPI program |
 * | kilter/status.h | what calls return, and errors in words |
 *
 * A program that was compiled for one version of Kilter also runs with later versions, as long as the file
 * name of the library stays the same, for example libkilter.so.1. In these versions, structs only grow at
 * their end, and statuses are only added.
 */
#ifndef KILTER_KILTER_H
#define KILTER_KILTER_H
#include "kilter/farm.h"
#include "kilter/policy.h"
#include "kilter/predict.h"
#include "kilter/random.h"
#include "kilter/run.h"
#include "kilter/status.h"
#include "kilter/sum.h"
#include "kilter/version.h"
#endif
