{{ config(materialized='materialized_view', indexes=[{'columns': ['customer'], 'name': 'totals_by_customer'}]) }}
select customer, sum(amount) as total from {{ ref('orders') }} group by customer
