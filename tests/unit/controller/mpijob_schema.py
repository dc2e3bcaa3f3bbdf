"""The schema of MPIJobs in our CRD, and the fields that mpi-operator publishes."""

from __future__ import annotations

from tests.unit.controller.schemas import crd

CRD = crd("mpijobs.kubeflow.org")
VERSIONS = {version["name"]: version for version in CRD["spec"]["versions"]}
SCHEMA = VERSIONS["v2beta1"]["schema"]["openAPIV3Schema"]["properties"]

# Those of a template's metadata.
TEMPLATE_UNUSED = ("creationTimestamp", "finalizers", "generateName", "name", "namespace")

# What mpi-operator's CRDs have, of both versions.
PUBLISHED = {
    *("spec.slotsPerWorker", "spec.runLauncherAsWorker", "spec.sshAuthMountPath", "spec.launcherCreationPolicy"),
    *("spec.mpiImplementation", "spec.cleanPodPolicy", "spec.mainContainer", "spec.runPolicy.cleanPodPolicy"),
    *("spec.runPolicy.ttlSecondsAfterFinished", "spec.runPolicy.activeDeadlineSeconds", "spec.runPolicy.suspend"),
    *("spec.runPolicy.backoffLimit", "spec.runPolicy.managedBy", "spec.runPolicy.schedulingPolicy.minAvailable"),
    *("spec.runPolicy.schedulingPolicy.queue", "spec.runPolicy.schedulingPolicy.minResources"),
    *("spec.runPolicy.schedulingPolicy.priorityClass", "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds"),
    *(
        f"spec.mpiReplicaSpecs.{role}.{field}"
        for role in ("Launcher", "Worker")
        for field in ("replicas", "restartPolicy", "template.spec", "template.metadata.labels")
    ),
}
