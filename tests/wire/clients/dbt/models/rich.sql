{{ config(materialized='view') }}
select customer from {{ ref('totals') }} where total > 5
