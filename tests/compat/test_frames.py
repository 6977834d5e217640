"""Columns of results are those of delta-spark 4.0.1, as its own commands print them."""

from __future__ import annotations

import re

import pytest

from boathouse.api import delta_frames as frames

CUBES, ZCUBES = "struct<num:bigint,size:bigint>", "struct<numFiles:bigint,size:bigint>"
FILES = "struct<min:bigint,max:bigint,avg:double,totalFiles:bigint,totalSize:bigint>"
PRINTED = {
    frames.HISTORY: "version:bigint,timestamp:timestamp,userId:string,userName:string,operation:string,"
    "operationParameters:map<string,string>,job:struct<jobId:string,jobName:string,jobRunId:string,runId:string,"
    "jobOwnerId:string,triggerType:string>,notebook:struct<notebookId:string>,clusterId:string,readVersion:bigint,"
    "isolationLevel:string,isBlindAppend:boolean,operationMetrics:map<string,string>,userMetadata:string,"
    "engineInfo:string",
    frames.DETAIL: "format:string,id:string,name:string,description:string,location:string,createdAt:timestamp,"
    "lastModified:timestamp,partitionColumns:array<string>,clusteringColumns:array<string>,numFiles:bigint,"
    "sizeInBytes:bigint,properties:map<string,string>,minReaderVersion:int,minWriterVersion:int,"
    "tableFeatures:array<string>",
    frames.RESTORE: "table_size_after_restore:bigint,num_of_files_after_restore:bigint,num_removed_files:bigint,"
    "num_restored_files:bigint,removed_files_size:bigint,restored_files_size:bigint",
    frames.OPTIMIZE: f"path:string,metrics:struct<numFilesAdded:bigint,numFilesRemoved:bigint,filesAdded:{FILES},"
    f"filesRemoved:{FILES},partitionsOptimized:bigint,zOrderStats:struct<strategyName:string,inputCubeFiles:{CUBES},"
    f"inputOtherFiles:{CUBES},inputNumCubes:bigint,mergedFiles:{CUBES},numOutputCubes:bigint,mergedNumCubes:bigint>,"
    f"clusteringStats:struct<inputZCubeFiles:{ZCUBES},inputOtherFiles:{ZCUBES},inputNumZCubes:bigint,"
    f"mergedFiles:{ZCUBES},numOutputZCubes:bigint>,numBins:bigint,numBatches:bigint,totalConsideredFiles:bigint,"
    "totalFilesSkipped:bigint,preserveInsertionOrder:boolean,numFilesSkippedToReduceWriteAmplification:bigint,"
    "numBytesSkippedToReduceWriteAmplification:bigint,startTimeMs:bigint,endTimeMs:bigint,"
    "totalClusterParallelism:bigint,totalScheduledTasks:bigint,autoCompactParallelismStats:struct<"
    "maxClusterActiveParallelism:bigint,minClusterActiveParallelism:bigint,maxSessionActiveParallelism:bigint,"
    "minSessionActiveParallelism:bigint>,deletionVectorStats:struct<numDeletionVectorsRemoved:bigint,"
    "numDeletionVectorRowsRemoved:bigint>,numTableColumns:bigint,numTableColumnsWithStats:bigint>",
}


@pytest.mark.parametrize("ours", PRINTED, ids=["history", "detail", "restore", "optimize"])
def test_columns_and_types_are_those_of_delta(ours):
    assert re.sub(r" (?=[a-z])", ":", ours.replace(", ", ",")) == PRINTED[ours]
