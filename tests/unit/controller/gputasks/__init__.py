"""Tests of GPUTasks."""
